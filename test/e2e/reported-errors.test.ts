/**
 * Errors of users and of the environment: each is reported once and clearly with its location, existing traffic continues, and the program
 * recovers without a restart when the cause is removed.
 */

import { chmodSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { replaceFiles } from '../certs/certificate-directory.ts';
import { eventually } from '../harness/eventually.ts';
import { freePorts } from '../harness/free-ports.ts';
import { linesOf, loggedLine } from '../harness/logged-line.ts';
import { Mesh, startMesh } from '../harness/mesh.ts';
import { probe } from '../harness/probe.ts';
import type { Program } from '../harness/program.ts';
import { conclude } from './conclude.ts';

/** Lines at level warn or error that a program has printed since an offset. */
const problemLines = (program: Program, from: number): string[] =>
  program.lines.slice(from).filter((line) => /\t(warn|error|fatal)\t/.test(line));

const isServing = async (mesh: Mesh): Promise<boolean> => (await probe(mesh.httpTarget)).outcome.ok;

describe('the control plane', () => {
  let mesh: Mesh;

  beforeAll(async () => {
    mesh = await startMesh({ sidecar: false });
  });

  afterAll(() => conclude(mesh));

  /** Versions that respond to a hundred requests. */
  const split = async (): Promise<string> => {
    const seenVersions = new Set<string>();
    for (let sentCount = 0; sentCount < 100; sentCount++) {
      const { outcome } = await probe(mesh.httpTarget);
      seenVersions.add((outcome.ok && outcome.version) || 'none');
      // There are only two versions.
      if (seenVersions.size === 2) break;
    }
    return [...seenVersions].sort().join(' ');
  };

  test.each([
    [
      'an invalid YAML file',
      (text: string) => text.replace('weight: 10', 'weight: 10\n   weight: : ['),
      { place: /routes\.yaml:\d+/ },
    ],
    [
      'an unknown field',
      (text: string) => text.replace('weight: 10', 'wieght: 10'),
      { object: 'VirtualService demo/sample', reason: /wieght/ },
    ],
    [
      'an invalid value',
      (text: string) => text.replace('weight: 10', 'weight: ten'),
      { object: 'VirtualService demo/sample', reason: /weight/ },
    ],
  ])(
    'reports %s as one error with its location, keeps the last valid state, and applies the repaired file',
    async (_, spoil, problemPlace) => {
      const { program } = mesh.discovery!;
      const validText = mesh.directory.read('routes.yaml');
      const from = program.lines.length;
      mesh.directory.edit('routes.yaml', spoil);
      await eventually(
        'the error is told',
        () =>
          linesOf(program.lines.slice(from), 'object.rejected', { place: /routes\.yaml/, ...problemPlace }).length > 0,
      );
      await sleep(500);
      expect(problemLines(program, from).filter((line) => /routes\.yaml/.test(line))).toHaveLength(1);
      expect(await split()).toBe('v1 v2');

      mesh.directory.write(
        'routes.yaml',
        validText.replace('weight: 90', 'weight: 0').replace('weight: 10', 'weight: 100'),
      );
      await eventually('the mended file takes effect', async () => (await split()) === 'v2');
      mesh.directory.write('routes.yaml', validText);
      await eventually('both versions again', async () => (await split()) === 'v1 v2');
    },
  );

  test('reports a port in use, and exits', async () => {
    const [port] = await freePorts(1);
    const portHolder = createServer().listen(port, '127.0.0.1');
    const exit = await mesh.runDiscovery(['--grpcAddr', `127.0.0.1:${port}`]);
    portHolder.close();
    expect(exit.code).toBe(1);
    expect(exit.output).toContain(`127.0.0.1:${port}`);
    expect(exit.output).not.toMatch(/^\s+at /m);
  });

  test('reports a configuration directory that does not exist, and exits', async () => {
    const exit = await mesh.runDiscovery(['--configDir', '/nonexistent/mesh']);
    expect(exit.code).toBe(1);
    expect(exit.output).toContain('/nonexistent/mesh');
    expect(exit.output).not.toMatch(/^\s+at /m);
  });
});

describe('the agent', () => {
  let mesh: Mesh;

  beforeAll(async () => {
    mesh = await Mesh.create({ sidecar: false, drainMs: 1_000, parentShutdownMs: 2_000 });
    await mesh.startSamples();
  });

  afterAll(() => conclude(mesh));

  test('reports an unreachable control plane, and Envoy serves as soon as it is available', async () => {
    const { program } = mesh.startGateway();
    await program.line(loggedLine('probe.waiting', { reason: /control plane 127\.0\.0\.1:\d+ is unreachable/ }));
    expect(mesh.envoysOf(mesh.gateway!)).toHaveLength(1);
    expect(program.exit).toBeUndefined();
    await mesh.startDiscovery();
    await mesh.waitForAgent(mesh.gateway!);
    await mesh.waitForResponse(mesh.httpTarget);
  });

  test('reports a status port in use, and exits', async () => {
    const [port] = await freePorts(1);
    const portHolder = createServer().listen(port, '127.0.0.1');
    const exit = await mesh.runAgent(['--statusPort', String(port)]);
    portHolder.close();
    expect(exit.code).not.toBe(0);
    expect(exit.output).toContain(String(port));
    expect(exit.output).not.toMatch(/^\s+at /m);
    expect(await isServing(mesh)).toBe(true);
  });

  test('reports an admin port in use at each attempt, and starts Envoy when the port is free', async () => {
    const [adminPort] = await freePorts(1);
    const portHolder = createServer().listen(adminPort, '127.0.0.1');
    const agent = await mesh.startExtraAgent(['--proxyAdminPort', String(adminPort)]);
    await agent.program.line(loggedLine('epoch.failed', { reason: /cannot bind.*Address already in use/ }));
    portHolder.close();
    await mesh.waitForAgent(agent);
    await agent.program.stop();
  });

  test('serves other traffic while a certificate is missing, and all traffic when it exists', async () => {
    const { directory } = mesh.certificates;
    renameSync(directory, `${directory}.away`);
    await mesh.gateway!.program.stop();
    mesh.startGateway();
    await mesh.waitForResponse(mesh.httpTarget);
    expect((await probe(mesh.httpsTarget)).outcome.ok).toBe(false);
    renameSync(`${directory}.away`, directory);
    await mesh.waitForResponse(mesh.httpsTarget);
    expect(await isServing(mesh)).toBe(true);
  });

  test.each([
    ['is removed', (file: string) => rmSync(file), { reason: /tls\.crt is missing beside tls\.key/ }],
    [
      'becomes invalid',
      (file: string) => replaceFiles(dirname(file), { [basename(file)]: 'garbage' }),
      { code: 'PEM_INVALID', reason: /tls\.crt: / },
    ],
  ])(
    'reports a certificate that %s as one error, keeps serving the previous one, and applies a valid one',
    async (_, spoil, expectedError) => {
      const { program } = mesh.gateway!;
      const from = program.lines.length;
      const previousSerial = (await probe(mesh.httpsTarget)).serialNumber;
      spoil(join(mesh.certificates.directory, 'tls.crt'));
      await program.line(loggedLine('config.rejected', expectedError), { fromLine: from });
      await sleep(1_500);
      expect((await probe(mesh.httpsTarget)).serialNumber).toBe(previousSerial);
      expect(linesOf(program.lines.slice(from), 'process.spawned')).toEqual([]);
      expect(linesOf(program.lines.slice(from), 'restart.decided')).toEqual([]);

      rmSync(mesh.certificates.directory, { recursive: true });
      const serial = mesh.renewCertificate();
      await eventually('the new certificate is served', async () => {
        return (await probe(mesh.httpsTarget)).serialNumber === serial;
      });
    },
  );

  test('reports the last output of an Envoy that exits immediately, increases the delays, and recovers with a repaired Envoy', async () => {
    const fake = join(mesh.root, 'fake-envoy');
    const realEnvoy = mesh.envoysOf(mesh.gateway!)[0]!.command[0]!;
    writeFileSync(fake, '#!/bin/sh\ncase "$*" in *validate*) exit 0;; esac\necho "no such device" >&2\nexit 3\n');
    chmodSync(fake, 0o755);
    const agent = await mesh.startExtraAgent(['--binaryPath', fake]);
    await agent.program.line(loggedLine('epoch.failed', { reason: /exit code 3: no such device/ }));
    rmSync(fake);
    writeFileSync(fake, `#!/bin/sh\nexec "${realEnvoy}" "$@"\n`);
    chmodSync(fake, 0o755);
    await mesh.waitForAgent(agent);
    await agent.program.stop();
  });

  test('reports how to configure the binary if Envoy is missing', async () => {
    const exit = await mesh.runAgent(['--binaryPath', '/nonexistent/envoy']);
    expect(exit.code).not.toBe(0);
    expect(exit.output).toContain('/nonexistent/envoy');
    expect(exit.output).not.toMatch(/^\s+at /m);
  });
});
