/** Subjects of faults: an agent with its Envoy, or a plain supervisor with the same Envoy. */
import { copyFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '../harness/eventually.ts';
import { type EnvoyProcess, envoysOf, hostProcesses, testRunVariable } from '../harness/host-processes.ts';
import type { Mesh } from '../harness/mesh.ts';
import { probe } from '../harness/probe.ts';
import { Program } from '../harness/program.ts';
import { sharedMemoryFile } from './agent-usage.ts';

export const subjectNames = ['pilot-agent', 'plain supervisor'] as const;
export type SubjectName = (typeof subjectNames)[number];

export interface FaultSubject {
  readonly name: SubjectName;
  readonly program: Program;
  /** Running Envoys, oldest epoch first. */
  envoys(): EnvoyProcess[];
}

/** Command line of the agent's first Envoy, for the plain supervisor. */
export type EnvoyCommand = readonly string[];

/**
 * Starts an agent and waits until its Envoy serves the gateway's listener.
 *
 * @param bootstrapFile custom bootstrap instead of a generated one
 */
export async function startAgent(mesh: Mesh, bootstrapFile?: string): Promise<FaultSubject> {
  const gateway = mesh.startGateway(bootstrapFile === undefined ? [] : ['--customConfigFile', bootstrapFile]);
  await mesh.waitForAgent(gateway);
  await mesh.waitForResponse(mesh.httpsTarget);
  return { name: 'pilot-agent', program: gateway.program, envoys: () => mesh.envoysOf(gateway) };
}

/**
 * Command line of an agent's Envoy with a copy of its bootstrap, for a start without the agent. Hot restart is off, because a plain supervisor does
 * not use it and would leave shared memory behind.
 */
export function plainCommand(mesh: Mesh, agent: FaultSubject): EnvoyCommand {
  const [envoy] = agent.envoys();
  if (envoy === undefined) throw new Error('the agent has no Envoy whose command line could be taken');
  const file = envoy.command[envoy.command.indexOf('-c') + 1]!;
  const copy = plainBootstrap(mesh);
  copyFileSync(file, copy);
  return [...envoy.command.map((argument) => (argument === file ? copy : argument)), '--disable-hot-restart'];
}

/** Copy of a generated bootstrap for the Envoys of the plain supervisor. */
export const plainBootstrap = (mesh: Mesh): string => join(mesh.root, 'plain-bootstrap.json');

/** Starts the plain supervisor on the agent's ports. The agent must have exited. */
export async function startPlainSupervisor(
  mesh: Mesh,
  command: EnvoyCommand,
  watchDelayMs: number,
  onStarted: (program: Program) => void,
): Promise<FaultSubject> {
  const program = Program.run('plain supervisor', process.execPath, {
    args: [
      join(import.meta.dirname, 'plain-supervisor.ts'),
      ...['--watch', mesh.certificates.directory],
      ...['--watch-delay-ms', String(watchDelayMs)],
      ...['--log', join(mesh.logDirectory, 'plain-envoy.log')],
      '--',
      ...command,
    ],
    env: { ...process.env, [testRunVariable]: testRunOf(mesh) },
    cwd: mesh.root,
    logFile: join(mesh.logDirectory, 'plain-supervisor.log'),
  });
  onStarted(program);
  await eventually("the plain supervisor's Envoy responds", async () => (await probe(mesh.httpsTarget)).outcome.ok, {
    deadlineMs: 20_000,
    hopeless: () => program.hopeless(),
  });
  return { name: 'plain supervisor', program, envoys: () => envoysOf(program.pid) };
}

/** The mark that identifies the mesh's processes for its cleanup. */
function testRunOf(mesh: Mesh): string {
  const discovery = hostProcesses().find(({ pid }) => pid === mesh.discovery?.program.pid);
  if (discovery?.testRun === undefined) throw new Error('the control plane has to run before the plain supervisor');
  return discovery.testRun;
}

/**
 * Whether the INITIALIZING bit of this base ID is set (docs/hot-restart-reference.md, fact 2).
 *
 * @returns `undefined` without shared memory, i.e. without hot restart
 */
export function initializingBit(baseId: number): boolean | undefined {
  try {
    return (readFileSync(sharedMemoryFile(baseId)).readUInt8(flagsOffset) & 1) === 1;
  } catch {
    return undefined;
  }
}

/** Offset of the little-endian `flags` in the shared memory. */
const flagsOffset = 96;
