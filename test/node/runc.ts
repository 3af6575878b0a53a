/** Containers of an image under runc, with the settings of a restricted pod but without a cluster. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { type Exit, Program } from '../harness/program.ts';

/** This user has no entry in the image's `/etc/passwd`. */
export const unknownUid = 4711;

interface Descriptor {
  readonly digest: string;
  readonly mediaType: string;
}

/**
 * Unpacks an image of an OCI layout.
 * @returns the folder of its files
 */
export function unpackImage(layout: string, tag: string, root: string): string {
  const read = (digest: string) => JSON.parse(readFileSync(blob(layout, digest), 'utf8'));
  const { manifests } = JSON.parse(readFileSync(join(layout, 'index.json'), 'utf8')) as {
    manifests: (Descriptor & { annotations: Record<string, string> })[];
  };
  const image = manifests.find(({ annotations }) => annotations['org.opencontainers.image.ref.name'] === tag)!;
  mkdirSync(root, { recursive: true });
  for (const { digest } of (read(image.digest) as { layers: Descriptor[] }).layers) {
    execFileSync('tar', ['-xf', blob(layout, digest), '-C', root]);
  }
  return root;
}

function blob(layout: string, digest: string): string {
  return join(layout, 'blobs', digest.replace(':', '/'));
}

export interface ContainerSettings {
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Files that are copied to the volume `/etc/istio/proxy`, by name. */
  readonly files?: Readonly<Record<string, string>>;
}

/** A container with a read-only root, no capabilities, an unknown UID and its own network, which has only loopback. */
export class RuncContainer {
  readonly program: Program;
  readonly #id: string;
  readonly #state: string;

  private constructor(program: Program, id: string, state: string) {
    this.program = program;
    this.#id = id;
    this.#state = state;
  }

  /** @param folder folder for the bundle; `root` is mounted read-only */
  static start(folder: string, root: string, { args, env = {}, files = {} }: ContainerSettings): RuncContainer {
    const id = `cp-${process.pid}-${crypto.randomUUID().slice(0, 6)}`;
    const [bundle, volume, state] = [join(folder, id), join(folder, `${id}-volume`), join(folder, 'runc')];
    for (const path of [bundle, volume, state]) mkdirSync(path, { recursive: true });
    for (const [name, text] of Object.entries(files)) writeFileSync(join(volume, name), text);
    execFileSync('chmod', ['-R', '777', volume]);
    writeFileSync(join(bundle, 'config.json'), JSON.stringify(specification(root, volume, args, env)));
    const program = Program.run(`container ${id}`, 'runc', {
      ...{ args: ['--root', state, 'run', '--bundle', bundle, id], cwd: folder, env: process.env },
    });
    return new RuncContainer(program, id, state);
  }

  async signal(signal: NodeJS.Signals): Promise<void> {
    await execa('runc', ['--root', this.#state, 'kill', this.#id, signal]);
  }

  /** Runs a command in the container. @returns its exit code and output */
  async exec(...command: string[]): Promise<{ code: number | undefined; output: string }> {
    const { exitCode, all = '' } = await execa('runc', ['--root', this.#state, 'exec', this.#id, ...command], {
      ...{ all: true, reject: false },
    });
    return { code: exitCode, output: all };
  }

  /** Stops the container. @returns its exit and how long it took */
  async stop(): Promise<Exit & { readonly ms: number }> {
    const began = performance.now();
    await this.signal('SIGTERM');
    const exit = await this.program.exited;
    return { ...exit, ms: performance.now() - began };
  }

  /** Kills the container; does nothing if it has exited. */
  async end(): Promise<void> {
    await execa('runc', ['--root', this.#state, 'delete', '--force', this.#id], { reject: false });
    await this.program.exited;
  }
}

function specification(root: string, volume: string, args: readonly string[], env: Readonly<Record<string, string>>) {
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  const none = { bounding: [], effective: [], permitted: [], inheritable: [], ambient: [] };
  const temporary = (options: readonly string[] = []) => ({
    ...{ type: 'tmpfs', source: 'tmpfs', options: ['nosuid', ...options] },
  });
  return {
    ociVersion: '1.0.2',
    root: { path: root, readonly: true },
    process: {
      ...{ args, cwd: '/', env: ['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', ...variables] },
      ...{ user: { uid: unknownUid, gid: unknownUid }, capabilities: none, noNewPrivileges: true },
    },
    mounts: [
      { destination: '/proc', type: 'proc', source: 'proc' },
      { destination: '/dev', ...temporary(['mode=755']) },
      { destination: '/dev/shm', ...temporary(['mode=1777', 'size=65536k']) },
      { destination: '/etc/istio/proxy', type: 'bind', source: volume, options: ['bind', 'rw'] },
    ],
    linux: { namespaces: ['pid', 'ipc', 'uts', 'mount', 'network'].map((type) => ({ type })) },
  };
}
