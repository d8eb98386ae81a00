/*
 * banned.h - calls that have a safer form here become compile errors
 *
 * Reads:  nothing
 * Writes: nothing
 * Next:   included last by every .c file; tools/modules.py checks this
 */
#ifndef WRIT_BASE_BANNED_H
#define WRIT_BASE_BANNED_H

/*
 * Undefine the names first: fortified C libraries define some of these functions as macros, and a
 * macro cannot be poisoned.
 */
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
