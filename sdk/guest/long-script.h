/* SPDX-License-Identifier: Apache-2.0 */
/* long-script.h: Linux takes no argument over 128 KiB, but a model may write a longer command. */
#ifndef SANDHOST_GUEST_LONG_SCRIPT_H
#define SANDHOST_GUEST_LONG_SCRIPT_H

/* Where the script is found by the shell that runs it. */
#define LONG_SCRIPT_FD 63

/* When argv is a shell with -c and a script that is too long, moves the script into a sealed memfd,
 * lets argv read it from LONG_SCRIPT_FD instead, and returns the memfd to be put there; else -1.
 * argv's strings are malloc'ed. */
int long_script_prepare(char **argv);

#endif
