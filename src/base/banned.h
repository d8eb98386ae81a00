/*
 * banned.h - calls that have a safer form here become compile errors
 *
 * Reads:  nothing
 * Writes: nothing
 * Next:   included last by every .c file; tools/rooms.py checks that it is
 */
#ifndef WRIT_BASE_BANNED_H
#define WRIT_BASE_BANNED_H

/* With fortification some of them are macros, which cannot be poisoned. */
#undef sprintf
#undef vsprintf
#undef strcpy
#undef strncpy
#undef strcat
#undef strncat
#pragma GCC poison strcpy strncpy strcat strncat sprintf vsprintf gets strtok
#pragma GCC poison strtok_r atoi atol atoll atof sscanf gmtime localtime ctime
#pragma GCC poison inet_aton inet_addr system popen tmpnam mktemp
#pragma GCC poison getpwnam getpwuid gethostbyname

#endif
