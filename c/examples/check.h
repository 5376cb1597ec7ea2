/* Ends a program where a call fails, with the call and the failure in words. */

#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>

#include "abide.h"

#define CHECK(call)                                                        \
    do {                                                                   \
        if ((call) != ABIDE_OK) {                                          \
            fprintf(stderr, "%s: %s\n", #call, abide_last_error());        \
            exit(1);                                                       \
        }                                                                  \
    } while (0)

#endif
