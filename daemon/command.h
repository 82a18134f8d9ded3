/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MATTXD_COMMAND_H
#define MATTXD_COMMAND_H

struct client;
struct json_object;

/**
 * command() - do what a client asks
 * @request: stays the caller's
 */
void command(struct client *client, struct json_object *request);

#endif
