#ifndef TEXT_H
#define TEXT_H
#endif
