#pragma once

/** A bare HTTP/1.1 echo of libevent and llhttp in a child, until it is killed: what a gateway could
 *  do at most. It answers every request with its body, checks no key and knows no model. */
void echo_serve(int tell, void *unused);
