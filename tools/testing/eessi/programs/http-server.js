// SPDX-License-Identifier: GPL-2.0
// Serves what it computes, also in its pool of threads: http-server.js; its port is
// in the file "port". It ends at the request /end.
const http = require('http');
const crypto = require('crypto');
const fs = require('fs');

let served = 0;
const server = http.createServer((request, response) => {
	if (request.url === '/end') {
		response.end(`served ${served}\n`);
		server.close();
		return;
	}
	served++;
	let x = Number(request.url.slice(1));
	for (let i = 0; i < 200000; i++)
		x = (x * 16807) % 2147483647;
	// the pool's work, while a timer and the disk are used as well
	crypto.pbkdf2(String(x), 'salt', 500, 16, 'sha256', (error, key) => {
		fs.appendFile('served', `${x}\n`, () => setTimeout(
			() => response.end(`${x} ${key.toString('hex')}\n`), 5));
	});
});
server.keepAliveTimeout = 600000;
server.listen(0, '127.0.0.1', () => {
	fs.writeFileSync('port.new', `${server.address().port}\n`);
	fs.renameSync('port.new', 'port');
});
