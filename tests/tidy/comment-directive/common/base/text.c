#define URL "http://example.org"
#endif // why
