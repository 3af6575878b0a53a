import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { createServer } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createActor, toPromise } from 'xstate';
import type { PreparedEpoch } from '../../../machines/agent/envoy/epoch.machine.ts';
import { createAuthority } from '../../../test/certs/authority.ts';
import {
  envoyBinary,
  freePort,
  temporaryFolder,
  temporaryScratch,
  testFlags,
  writeAdminOnlyBootstrap,
} from '../../../test/fixtures/real-envoy.ts';
import { FileTurns } from '../../runtime/files/file-turns.ts';
import { whyUnreachable } from '../admin/why-unreachable.ts';
import { digestDirectories } from '../files/certificate-files.ts';
import { type PrepareEnvironment, prepareEpoch } from './prepare-epoch.ts';

function folder(): string {
  const temporary = temporaryFolder();
  onTestFinished(() => temporary[Symbol.dispose]());
  return temporary.path;
}

function prepare(
  environment: Partial<PrepareEnvironment>,
  input: {
    epoch: number;
    baseId?: number;
    adminPort?: number;
    validate: boolean;
    certificates?: string;
    controlPlaneLimitMs?: number | null;
  },
): Promise<PreparedEpoch> {
  const logic = prepareEpoch({
    binaries: { pathOf: () => envoyBinary() },
    guard: [],
    flags: testFlags,
    configPath: folder(),
    scratch: temporaryScratch(),
    admin: { host: '127.0.0.1', port: 15_000 },
    source: { bootstrap: () => ({}) },
    discoveryAddress: undefined,
    certificates: [],
    turns: new FileTurns(),
    ...environment,
  });
  return toPromise(
    createActor(logic, {
      input: { baseId: 1, adminPort: 15_000, binary: 'first', certificates: null, controlPlaneLimitMs: null, ...input },
    }).start(),
  );
}

async function fileOf(...parameters: Parameters<typeof prepare>): Promise<string> {
  const preparedEpoch = await prepare(...parameters);
  return 'configFile' in preparedEpoch ? preparedEpoch.configFile : '';
}

test('writes a bootstrap file per epoch into a directory that only the current user can read', async () => {
  const configPath = join(folder(), 'proxy');
  const source = { bootstrap: () => ({ node: { id: 'x' } }) };
  const configFile = await fileOf({ configPath, source }, { epoch: 0, validate: false });
  expect(configFile).toBe(join(configPath, 'envoy-rev0.json'));
  expect(JSON.parse(readFileSync(configFile, 'utf8'))).toEqual({ node: { id: 'x' } });
  expect(statSync(configPath).mode & 0o777).toBe(0o700);
  expect(existsSync(`${configFile}.new`)).toBe(false);
});

test('uses different files and another admin port for epochs of the spare base ID', async () => {
  const configPath = folder();
  const source = { bootstrap: (adminPort: number) => ({ adminPort }) };
  const writeFor = async (epoch: number, adminPort: number): Promise<[string, unknown]> => {
    const configFile = await fileOf({ configPath, source }, { epoch, adminPort, validate: false });
    return [basename(configFile), JSON.parse(readFileSync(configFile, 'utf8'))];
  };
  expect(await writeFor(0, 15_000)).toEqual(['envoy-rev0.json', { adminPort: 15_000 }]);
  expect(await writeFor(0, 15_005)).toEqual(['envoy-rev0b.json', { adminPort: 15_005 }]);
  expect(await writeFor(1, 15_005)).toEqual(['envoy-rev1b.json', { adminPort: 15_005 }]);
});

test('reports which free admin port was chosen for the spare base ID if none is configured', async () => {
  const source = { bootstrap: (adminPort: number) => ({ adminPort }) };
  const preparedEpoch = await prepare({ source }, { epoch: 0, adminPort: 0, validate: false });
  const { configFile, adminPort } = preparedEpoch as { configFile: string; adminPort: number };
  expect(adminPort).toBeGreaterThanOrEqual(16_000);
  expect(basename(configFile)).toBe('envoy-rev0b.json');
  expect(JSON.parse(readFileSync(configFile, 'utf8'))).toEqual({ adminPort });
});

test('validates a bootstrap that names /dev/stdout and /dev/stderr', async () => {
  const access_log = ['/dev/stdout', '/dev/stderr'].map((path) => ({
    name: 'envoy.access_loggers.file',
    typed_config: { '@type': 'type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog', path },
  }));
  const address = { socket_address: { address: '127.0.0.1', port_value: 0 } };
  const source = { bootstrap: () => ({ admin: { address, access_log } }) };
  await expect(prepare({ source }, { epoch: 0, validate: true })).resolves.toBeDefined();
});

test('reports file and reason if Envoy rejects a bootstrap, and keeps the file', async () => {
  const configPath = folder();
  const source = { bootstrap: () => ({ admin: { bogus: 1 } }) };
  const file = join(configPath, 'envoy-rev3.json');
  await expect(prepare({ configPath, source }, { epoch: 3, validate: true })).rejects.toThrow(
    new RegExp(`invalid Envoy bootstrap: Envoy rejects ${file}: .*bogus`),
  );
  expect(existsSync(file)).toBe(true);
});

test('uses a custom bootstrap file unchanged', async () => {
  const customConfigFile = writeAdminOnlyBootstrap(folder(), 0);
  const preparedEpoch = await prepare({ source: { customConfigFile } }, { epoch: 2, validate: true });
  expect(preparedEpoch).toEqual({ configFile: customConfigFile, adminPort: 15_000 });
});

test('reports the name of a directory that is not writable', async () => {
  const configPath = join(writeAdminOnlyBootstrap(folder(), 0), 'below-a-file');
  expect(await prepare({ configPath }, { epoch: 0, validate: false })).toEqual({
    unwritable: `cannot write to folder: ${configPath}/envoy-rev0.json: ENOTDIR: not a directory [FILE_UNWRITABLE] → Set --configPath to a writable directory.`,
  });
});

test('reports the file name and leaves no partial bootstrap if the disk is full', async () => {
  const configPath = folder();
  await using handle = await open('/dev/null');
  const diskFull = Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC', errno: -28 });
  const write = vi.spyOn(Object.getPrototypeOf(handle) as FileHandle, 'writeFile').mockRejectedValueOnce(diskFull);
  onTestFinished(() => write.mockRestore());
  expect(await prepare({ configPath }, { epoch: 0, validate: false })).toEqual({
    unwritable: `cannot write to folder: ${configPath}/envoy-rev0.json: ENOSPC: no space left on device [FILE_UNWRITABLE] → Set --configPath to a writable directory.`,
  });
  expect(readdirSync(configPath)).toEqual([]);
});

test('recreates a removed directory', async () => {
  const configPath = join(folder(), 'a', 'proxy');
  await prepare({ configPath }, { epoch: 0, validate: false });
  rmSync(dirname(configPath), { recursive: true });
  const configFile = await fileOf({ configPath }, { epoch: 1, validate: false });
  expect(existsSync(configFile)).toBe(true);
});

test('does not report a rejection if Envoy cannot run the validation', async () => {
  const scratch = [{ path: '/dev/null/below', flag: '--runDir' }];
  expect(await prepare({ scratch }, { epoch: 0, validate: true })).toEqual({
    unwritable:
      'cannot write to folder: /dev/null/below: ENOTDIR: not a directory [FILE_UNWRITABLE] → Set --runDir to a writable directory.',
  });
  const binary = join(folder(), 'envoy');
  writeFileSync(binary, '#!/bin/sh\nkill -9 $$\n', { mode: 0o700 });
  await expect(prepare({ binaries: { pathOf: () => binary } }, { epoch: 0, validate: true })).rejects.toThrow(
    /Envoy could not validate .*envoy-rev0.json: .*SIGKILL/,
  );
});

test('probes the control plane for each epoch if requested, and reports it as unreachable if it does not connect within the limit', async () => {
  const discoveryAddress = `127.0.0.1:${await freePort()}`;
  const unasked = await prepare({ discoveryAddress }, { epoch: 1, validate: false, controlPlaneLimitMs: null });
  expect(unasked).toHaveProperty('configFile');
  expect(await prepare({ discoveryAddress }, { epoch: 0, validate: false, controlPlaneLimitMs: 2_000 })).toEqual({
    unreachable: `control plane unreachable: ${discoveryAddress} (connection refused); Envoy is not restarted [CONTROL_PLANE_UNREACHABLE]`,
  });
});

test('reports a control plane that accepts connections as reachable', async () => {
  const server = createServer((socket) => socket.destroy());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()));
  onTestFinished(() => void server.close());
  expect(await whyUnreachable(`127.0.0.1:${(server.address() as { port: number }).port}`)).toBeUndefined();
});

test('does not start a child whose certificates changed after their validation', async () => {
  const directory = folder();
  const file = join(directory, 'ca.crt');
  const authority = createAuthority();
  writeFileSync(file, authority.certificate);
  const { digest } = await digestDirectories([directory]);
  const child = { epoch: 1, validate: false, certificates: digest };
  await expect(prepare({ certificates: [directory] }, child)).resolves.toBeDefined();
  writeFileSync(file, 'garbage');
  expect(await prepare({ certificates: [directory] }, child)).toEqual({
    outdated: expect.stringContaining(
      `the certificate files changed after they were checked: ${directory}: ca.crt: no PEM certificate`,
    ),
  });
  writeFileSync(file, createAuthority().certificate);
  expect(await prepare({ certificates: [directory] }, child)).toEqual({
    outdated: expect.stringContaining('not validated yet, or rejected by Envoy'),
  });
  // Without a serving Envoy, any certificates are acceptable.
  await expect(prepare({ certificates: [directory] }, { epoch: 0, validate: false })).resolves.toBeDefined();
});
