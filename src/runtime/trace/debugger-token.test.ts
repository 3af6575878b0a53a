/** Issue 33, item 13: files and listeners of another user, found by a debugger that runs as root. */
import { chmodSync, linkSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { eventually } from '../../../test/harness/eventually.ts';
import { asOtherUser, otherUid, programOfOtherUser } from '../../../test/harness/other-user.ts';
import { liveSource } from '../../debugger/visualize/live-source.ts';
import { connectToProgram, findDebuggerToken, readDebuggerToken } from './debugger-token.ts';

const aToken = 'a'.repeat(43);
const secret = 's'.repeat(43);

/** A temporary directory writable by all users, in which the other user has its run directory. */
async function sharedTemporary(): Promise<{ root: string; theirs: string; private: string }> {
  const root = mkdtempSync(join(tmpdir(), 'shared-'));
  chmodSync(root, 0o1777);
  vi.stubEnv('TMPDIR', root);
  onTestFinished(() => {
    vi.unstubAllEnvs();
    rmSync(root, { recursive: true, force: true });
  });
  const theirs = join(root, `chartpilot-${otherUid}`);
  await asOtherUser(`mkdir -m 755 ${theirs}`);
  const file = join(root, 'root-only');
  writeFileSync(file, `${secret}\n`, { mode: 0o600 });
  return { root, theirs, private: file };
}

/** Listens, and prints each received line. */
const listener = `
import socket
s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(8); print(s.getsockname()[1], flush=True)
while True:
    c, _ = s.accept()
    data = b''
    while b'\\r\\n\\r\\n' not in data:
        part = c.recv(65536)
        if not part: break
        data += part
    print(repr(data), flush=True)
    c.sendall(b'HTTP/1.1 401 Unauthorized\\r\\ncontent-length: 0\\r\\nconnection: close\\r\\n\\r\\n')
    c.close()
`;

const deaf = `
import socket, time
s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(8); print(s.getsockname()[1], flush=True)
time.sleep(60)
`;

async function receiveOutput(port: number, output: () => string): Promise<string> {
  await expect(liveSource({ host: '127.0.0.1', port }).header()).rejects.toThrow(/401/);
  await eventually('the request is there', () => output().includes('GET'));
  // The connection is the one whose owner was checked.
  expect(output().trim().split('\n')).toHaveLength(2);
  return output();
}

test('root sends no content of its own file to another user whose token file is a link to it', async () => {
  const { theirs, private: file } = await sharedTemporary();
  const { firstLine, output } = await programOfOtherUser(listener);
  const port = Number(firstLine);
  await asOtherUser(`ln -s ${file} ${theirs}/debugger-${port}.token`);
  expect(await receiveOutput(port, output)).not.toContain(secret);
  const { rejected, socket } = await connectToProgram({ host: '127.0.0.1', port });
  socket.destroy();
  expect(rejected).toEqual([expect.stringMatching(/debugger-\d+\.token: ELOOP/)]);
});

test('root sends no content of its own file that has a hard link in the run directory of another user', async () => {
  const { theirs, private: file } = await sharedTemporary();
  const { firstLine, output } = await programOfOtherUser(listener);
  linkSync(file, join(theirs, `debugger-${firstLine}.token`));
  expect(await receiveOutput(Number(firstLine), output)).not.toContain(secret);
});

test('the search for a token does not block if a token file is a FIFO', async () => {
  const { theirs } = await sharedTemporary();
  const { firstLine, output } = await programOfOtherUser(listener);
  await asOtherUser(`mkfifo ${theirs}/debugger-${firstLine}.token`);
  const request = await receiveOutput(Number(firstLine), output);
  expect(request).toContain('GET /debug/trace');
  expect(request).not.toContain('uthorization');
});

test.each([
  ['a large file', 'head -c 100000 /dev/zero'],
  ['text other than a token', 'echo hello'],
])('%s is not sent in place of a token file', async (_, command) => {
  const { theirs } = await sharedTemporary();
  const { firstLine, output } = await programOfOtherUser(listener);
  await asOtherUser(`${command} > ${theirs}/debugger-${firstLine}.token`);
  expect(await receiveOutput(Number(firstLine), output)).not.toContain('uthorization');
});

test('the search for a token does not follow a run directory that is a link', async () => {
  const { root, theirs } = await sharedTemporary();
  const port = 1;
  const privateDir = join(root, 'mine');
  mkdirSync(privateDir, { mode: 0o700 });
  writeFileSync(join(privateDir, `debugger-${port}.token`), secret);
  await asOtherUser(`rmdir ${theirs} && ln -s ${privateDir} ${theirs}`);
  expect(findDebuggerToken(port, { owner: otherUid })).toEqual({ rejected: [expect.stringContaining('ENOTDIR')] });
});

test('the token of a program is sent only to the user that accepts the connection, not to another one that now listens on the port', async () => {
  const { root } = await sharedTemporary();
  const { firstLine, output } = await programOfOtherUser(listener);
  const port = Number(firstLine);
  const ownDirectory = join(root, `chartpilot-${process.geteuid!()}`);
  mkdirSync(ownDirectory, { mode: 0o700 });
  writeFileSync(join(ownDirectory, `debugger-${port}.token`), secret, { mode: 0o600 });
  expect(readDebuggerToken(port)).toBe(secret);
  expect(await receiveOutput(port, output)).not.toContain(secret);
});

test('a listener that never accepts receives no token, even if an older kernel reports uid 0 for it', async () => {
  const { root } = await sharedTemporary();
  const port = Number((await programOfOtherUser(deaf)).firstLine);
  const ownDirectory = join(root, `chartpilot-${process.geteuid!()}`);
  mkdirSync(ownDirectory, { mode: 0o700 });
  writeFileSync(join(ownDirectory, `debugger-${port}.token`), secret, { mode: 0o600 });
  const { socket, ...connectedProgram } = await connectToProgram({ host: '127.0.0.1', port }, { acceptLimitMs: 100 });
  // Simulates older kernels: a row of /proc/net/tcp without a process.
  const hex = port.toString(16).toUpperCase().padStart(4, '0');
  const [row] = readFileSync('/proc/net/tcp', 'utf8').match(new RegExp(`^.*: 0100007F:${hex} .* 01 .*$`, 'm')) ?? [];
  expect(row?.trim().split(/\s+/)[9]).toBe('0');
  socket.destroy();
  expect(connectedProgram).toEqual({ rejected: [expect.stringContaining('no process has accepted')] });
});

test('root finds the token of another user’s program in that user’s run directory, at both loopback addresses', async () => {
  const { theirs } = await sharedTemporary();
  const { firstLine } = await programOfOtherUser(listener);
  const port = Number(firstLine);
  await asOtherUser(`umask 077; echo ${aToken} > ${theirs}/debugger-${port}.token`);
  const { socket, ...connectedProgram } = await connectToProgram({ host: '127.0.0.1', port });
  socket.destroy();
  expect(connectedProgram).toEqual({ token: aToken, rejected: [] });
  const server = createServer().listen(0, '::1');
  onTestFinished(() => void server.close());
  await eventually('it listens', () => server.listening);
  const at = server.address() as { port: number };
  const ownDirectory = join(process.env.TMPDIR!, `chartpilot-${process.geteuid!()}`);
  mkdirSync(ownDirectory, { mode: 0o700 });
  writeFileSync(join(ownDirectory, `debugger-${at.port}.token`), aToken, { mode: 0o600 });
  const overIpv6 = await connectToProgram({ host: '::1', port: at.port });
  overIpv6.socket.destroy();
  expect(overIpv6.token).toBe(aToken);
});

test('the search for a token finds the token below the default --configPath, where a program with a read-only root writes it', () => {
  const root = mkdtempSync(join(tmpdir(), 'working-directory-'));
  const cwd = vi.spyOn(process, 'cwd').mockReturnValue(root);
  onTestFinished(() => {
    cwd.mockRestore();
    rmSync(root, { recursive: true });
  });
  const runDir = join(root, `etc/istio/proxy/chartpilot-${process.geteuid!()}`);
  mkdirSync(runDir, { recursive: true });
  writeFileSync(join(runDir, 'debugger-15020.token'), `${aToken}\n`, { mode: 0o600 });
  expect(readDebuggerToken(15020)).toBe(aToken);
});
