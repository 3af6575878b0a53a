/** Agents in containers, by default with an Envoy that has only an admin interface. */
import { chmodSync, copyFileSync, linkSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import { readDebuggerToken } from '../../src/runtime/trace/debugger-token.ts';
import { envoyBinary, temporaryFolder, writeAdminOnlyBootstrap } from '../fixtures/real-envoy.ts';
import { Container, type ContainerOptions } from './container.ts';
import { eventually } from './eventually.ts';
import { freePorts } from './free-ports.ts';
import { hostProcesses } from './host-processes.ts';

export interface ContainedAgent {
  readonly container: Container;
  readonly ready: () => Promise<boolean>;
  /** Whether the status port responds, with any status. */
  readonly responds: () => Promise<boolean>;
  /**
   * Sends a command to the status port, with the debugger's token.
   * @returns the status of the response
   */
  readonly post: (path: string) => Promise<number>;
  /** The signals that the agent received, from its trace. */
  readonly signals: () => string[];
}

export interface ContainedAgentOptions extends Pick<ContainerOptions, 'uid'> {
  /** Shell commands such as mounts. `$FOLDER` is the agent's working directory, `$FOLDER/rw` an empty folder in it. */
  readonly prepare?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
  /** Passes only the ports and the binary, so that the agent generates Envoy's bootstrap. */
  readonly bare?: boolean;
  /** Writes a bootstrap instead of the default one, which has only an admin interface. */
  readonly bootstrap?: (folder: string, adminPort: number) => string;
}

/** An agent whose Envoy has only an admin interface, unless the options specify a bootstrap. */
export async function startAgent(
  flags: readonly string[] = [],
  {
    prepare = [],
    env = {},
    bare = false,
    bootstrap: write = writeAdminOnlyBootstrap,
    ...options
  }: ContainedAgentOptions = {},
): Promise<ContainedAgent> {
  const temporary = temporaryFolder();
  const folder = temporary.path;
  const trace = join(folder, 'agent.trace');
  const [adminPort = 0, statusPort = 0] = await freePorts(2);
  const bootstrap = write(folder, adminPort);
  // Another user cannot read the home of the user that installed Envoy.
  linkOrCopy(envoyBinary(), join(folder, 'envoy'));
  mkdirSync(join(folder, 'rw'));
  chmodSync(folder, 0o755);
  const container = await Container.start({
    ...options,
    prepare,
    cwd: folder,
    env: { ...process.env, FOLDER: folder, ...env },
    args: [
      ...['proxy', 'router', '--proxyAdminPort', String(adminPort), '--statusPort', String(statusPort)],
      ...['--binaryPath', join(folder, 'envoy'), '--concurrency', '1', '--terminationDrainDuration', '200ms'],
      ...(bare ? [] : ['--customConfigFile', bootstrap, '--runDir', join(folder, 'run'), '--trace', trace]),
      ...flags.map((flag) => flag.replace('$FOLDER', folder)),
    ],
  });
  onTestFinished(async () => {
    container.signal('SIGKILL');
    await container.ended();
    temporary[Symbol.dispose]();
  });
  const readStatus = (): Promise<number | undefined> =>
    fetch(`http://127.0.0.1:${statusPort}/healthz/ready`).then(
      ({ status }) => status,
      () => undefined,
    );
  return {
    container,
    ready: async () => (await readStatus()) === 200,
    responds: async () => (await readStatus()) !== undefined,
    post: async (path) => {
      const token = readDebuggerToken(statusPort, { runDir: join(folder, 'run') });
      const headers = { authorization: `Bearer ${token}` };
      return (await fetch(`http://127.0.0.1:${statusPort}${path}`, { method: 'POST', headers })).status;
    },
    signals: () =>
      [...readFileSync(trace, 'utf8').matchAll(/"signal\.received","signal":"(\w+)"/g)].map(([, name]) => name!),
  };
}

/** Copies a hundred megabytes only if the target is on another file system. */
function linkOrCopy(from: string, to: string): void {
  try {
    linkSync(from, to);
  } catch {
    copyFileSync(from, to);
  }
}

export async function readyAgent(...args: Parameters<typeof startAgent>): Promise<ContainedAgent> {
  const agent = await startAgent(...args);
  await eventually('the agent is ready', agent.ready, { hopeless: () => agent.container.program.hopeless() });
  return agent;
}

/** Shorter than the default drain and shutdown times, but enough for a busy machine to start Node and stop an Envoy. */
const endsWithinMs = 30_000;

/** @returns the exit, or the state of a container that does not exit */
export const endOf = async ({ container }: ContainedAgent): Promise<unknown> =>
  Promise.race([container.ended(), sleep(endsWithinMs, 'still running', { ref: false })]);

/** Flags of an Envoy that exits immediately: it prints its version, or validates a bootstrap. */
const nonServingFlags = ['--mode', '--version', '--hot-restart-version'];

/** Envoys that serve with this agent's bootstrap. */
export function envoysIn({ container }: ContainedAgent): readonly number[] {
  const folder = container.cwd;
  return hostProcesses()
    .filter(({ command }) => command[0]?.endsWith('envoy') && command.some((argument) => argument.startsWith(folder)))
    .filter(({ command }) => !nonServingFlags.some((nonServingFlag) => command.includes(nonServingFlag)))
    .map(({ pid }) => pid);
}
