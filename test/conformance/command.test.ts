/** `pilot-discovery xds-conformance` as a process. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { test as base, expect } from 'vitest';
import { programFile } from '../harness/program-files.ts';
import { AdapterClient } from './adapter-client.ts';
import { HarnessClient, variants } from './harness-client.ts';

type Run = (...flags: string[]) => ChildProcess;

/** `run` starts the program. It is stopped after the test. */
const test = base.extend<{ run: Run }>({
  run: async ({ task: _ }, use) => {
    const children: ChildProcess[] = [];
    await use((...flags) => {
      const program = programFile('pilot-discovery');
      const child = spawn(process.execPath, [program, 'xds-conformance', ...flags], { stdio: 'pipe' });
      children.push(child);
      return child;
    });
    for (const child of children) child.kill('SIGKILL');
  },
});

/** Ports in the line that the program prints. */
async function portsOf(child: ChildProcess): Promise<{ port: number; adapterPort: number }> {
  const [line] = (await once(createInterface({ input: child.stdout! }), 'line')) as [string];
  const match = /^xDS on 127\.0\.0\.1:(\d+), adapter on 127\.0\.0\.1:(\d+)$/.exec(line);
  expect(match, line).not.toBeNull();
  return { port: Number(match![1]), adapterPort: Number(match![2]) };
}

test.for(['SIGTERM', 'SIGINT'] as const)(
  'xds-conformance serves a harness until %s, then exits with 0',
  async (signal, { run }) => {
    const child = run('--port', '0', '--adapterPort', '0');
    const { port, adapterPort } = await portsOf(child);
    const adapter = new AdapterClient(adapterPort, 'test-id');
    const client = new HarnessClient(port, variants[1]!, 'test-id');
    await adapter.setState('v1', { CDS: ['A'] });
    client.subscribe('CDS', ['A']);
    expect(await client.next('CDS')).toMatchObject({ version: 'v1', names: ['A'] });
    child.kill(signal);
    expect(await once(child, 'exit')).toEqual([0, null]);
    adapter.close();
    client.close();
  },
);

test('xds-conformance reports a port in use and exits with 1', async ({ run }) => {
  const { port } = await portsOf(run('--port', '0', '--adapterPort', '0'));
  const secondRun = run('--port', `${port}`, '--adapterPort', '0');
  let errors = '';
  secondRun.stderr!.on('data', (text: Buffer) => {
    errors += text.toString();
  });
  expect((await once(secondRun, 'exit'))[0]).toBe(1);
  expect(errors).toContain(`127.0.0.1:${port}`);
  expect(errors).not.toContain('    at ');
});

test('xds-conformance rejects an invalid port', async ({ run }) => {
  expect((await once(run('--port', '70000'), 'exit'))[0]).toBe(1);
});
