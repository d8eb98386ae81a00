/*
 * attr.h - compiler attributes and ARRAY_LEN
 *
 * Reads:  nothing
 * Writes: nothing
 * Next:   every module
 */
#ifndef WRIT_BASE_ATTR_H
#define WRIT_BASE_ATTR_H

#define must_check __attribute__((warn_unused_result))
#define printf_like(fmt, args) __attribute__((format(printf, fmt, args)))

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#endif
