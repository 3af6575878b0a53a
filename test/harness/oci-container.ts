/** Runs containers of an OCI layout with runc: read-only root, no capabilities and no new privileges unless a test grants some. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Program } from './program.ts';

export interface ImageConfig {
  readonly User: string;
  readonly Env: readonly string[];
  readonly Entrypoint: readonly string[];
}

export interface UnpackedImage {
  readonly root: string;
  readonly config: ImageConfig;
}

interface Descriptor {
  readonly digest: string;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** Unpacks the layers of an image, in order, to `root`, as root. */
export function unpackImage(layout: string, tag: string, root: string): UnpackedImage {
  const blob = ({ digest }: Descriptor): string => join(layout, 'blobs', digest.replace(':', '/'));
  const json = (path: string) => JSON.parse(readFileSync(path, 'utf8'));
  const index = json(join(layout, 'index.json')) as { manifests: Descriptor[] };
  const imageManifest = index.manifests.find(
    ({ annotations }) => annotations?.['org.opencontainers.image.ref.name'] === tag,
  );
  if (imageManifest === undefined) throw new Error(`${layout} has no image ${tag}`);
  const manifest = json(blob(imageManifest)) as { config: Descriptor; layers: Descriptor[] };
  mkdirSync(root, { recursive: true });
  for (const layer of manifest.layers) mustRun('tar', '-xpf', blob(layer), '-C', root);
  return { root, config: json(blob(manifest.config)).config };
}

function mustRun(program: string, ...args: string[]): string {
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${program} ${args.join(' ')}: ${stderr}`);
  return stdout;
}

export interface OciContainerOptions {
  readonly image: UnpackedImage;
  readonly args: readonly string[];
  readonly uid: number;
  readonly env?: Readonly<Record<string, string>>;
  readonly capabilities?: readonly string[];
  /** Folders in memory. */
  readonly tmpfs?: readonly string[];
  /** Read-only mounts: path in the container → path on this machine. */
  readonly volumes?: Readonly<Record<string, string>>;
  /** File of a network namespace; by default a network without interfaces. */
  readonly network?: string;
}

let startedCount = 0;

export class OciContainer {
  readonly id: string;
  readonly program: Program;
  readonly #bundle: string;
  readonly #state: string;
  readonly #cgroup: string;

  constructor({
    image,
    args,
    uid,
    env = {},
    capabilities = [],
    tmpfs = [],
    volumes = {},
    network,
  }: OciContainerOptions) {
    this.id = `chartpilot-test-${process.pid}-${startedCount++}`;
    this.#bundle = mkdtempSync(join(tmpdir(), 'chartpilot-runc-'));
    this.#state = join(this.#bundle, 'state');
    this.#cgroup = `/${this.id}`;
    mustRun('runc', 'spec', '--bundle', this.#bundle);
    const file = join(this.#bundle, 'config.json');
    const spec = JSON.parse(readFileSync(file, 'utf8'));
    const caps = capabilities.map((name) => `CAP_${name}`);
    const sets = ['bounding', 'effective', 'permitted', 'inheritable', 'ambient'];
    spec.process = {
      ...spec.process,
      terminal: false,
      user: { uid, gid: uid },
      args: [...image.config.Entrypoint, ...args],
      env: [...image.config.Env, ...Object.entries(env).map(([name, value]) => `${name}=${value}`)],
      capabilities: Object.fromEntries(sets.map((set) => [set, caps])),
      noNewPrivileges: true,
    };
    spec.root = { path: image.root, readonly: true };
    spec.mounts.push(
      ...tmpfs.map((destination) => ({ destination, type: 'tmpfs', source: 'tmpfs', options: ['nosuid', 'nodev'] })),
      ...Object.entries(volumes).map(([destination, source]) => ({
        destination,
        source,
        type: 'bind',
        options: ['rbind', 'ro'],
      })),
    );
    spec.linux.cgroupsPath = this.#cgroup;
    for (const namespace of spec.linux.namespaces) {
      if (namespace.type === 'network' && network !== undefined) namespace.path = network;
    }
    writeFileSync(file, JSON.stringify(spec));
    this.program = Program.run(this.id, 'runc', {
      args: ['--root', this.#state, 'run', '--bundle', this.#bundle, this.id],
      cwd: this.#bundle,
      env: process.env,
    });
  }

  /** Sends a signal to the first process, as a container runtime does. */
  signal(signal: NodeJS.Signals): void {
    mustRun('runc', '--root', this.#state, 'kill', this.id, signal);
  }

  /**
   * Runs a program of the image in the container.
   * @returns its output, or `undefined` if it fails
   */
  exec(...command: string[]): string | undefined {
    const { status, stdout } = spawnSync('runc', ['--root', this.#state, 'exec', this.id, ...command], {
      encoding: 'utf8',
    });
    return status === 0 ? stdout : undefined;
  }

  /** Bytes charged to the container's cgroup, and the proportional set size of its processes. */
  memory(): { readonly usageBytes: number; readonly pssBytes: number } {
    const [first, second] = [`/sys/fs/cgroup/memory${this.#cgroup}`, `/sys/fs/cgroup${this.#cgroup}`];
    const [folder, usage] = existsSync(first) ? [first, 'memory.usage_in_bytes'] : [second, 'memory.current'];
    const pids = readFileSync(join(folder, 'cgroup.procs'), 'utf8').split('\n').filter(Boolean);
    const pssKb = pids.map((pid) =>
      Number(/^Pss: +(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1]),
    );
    return {
      usageBytes: Number(readFileSync(join(folder, usage), 'utf8')),
      pssBytes: pssKb.reduce((sum, kb) => sum + kb, 0) * 1024,
    };
  }

  async remove(): Promise<void> {
    spawnSync('runc', ['--root', this.#state, 'delete', '--force', this.id]);
    await this.program.exited;
    rmSync(this.#bundle, { recursive: true, force: true });
  }
}
