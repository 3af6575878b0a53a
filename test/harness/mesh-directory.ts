import { cpSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../src/runtime/package-root.ts';

/** The ports that the example mesh names. */
export interface MeshPorts {
  /** Ports of the gateway's Envoy. */
  readonly http: number;
  readonly https: number;
  /** Ports of the sidecar's Envoy: its listener for v1's outbound calls, and the one for calls to v1. */
  readonly sidecarEgress: number;
  readonly sidecarIngress: number;
  /** Ports of the two versions of the sample service. */
  readonly v1: number;
  readonly v2: number;
}

/** Ports in the files of `examples/mesh`; each number is unique there. */
export const examplePorts: MeshPorts = {
  http: 18080,
  https: 18443,
  sidecarEgress: 19080,
  sidecarIngress: 19101,
  v1: 19001,
  v2: 19002,
};

const exampleCertificates = '/etc/istio/ingressgateway-certs';

export interface Weights {
  readonly v1: number;
  readonly v2: number;
}

/** A copy of `examples/mesh` with its own ports and paths, which a test edits while the control plane watches it. */
export class MeshDirectory {
  readonly path: string;
  readonly meshConfigFile: string;
  readonly #examples: string;

  /** Copies the example of this checkout, or of another installation of the package, to a folder below `root`. */
  constructor(root: string, ports: MeshPorts, certificateDirectory: string, installation = packageRoot()) {
    const examples = join(installation, 'examples');
    this.#examples = examples;
    this.path = join(root, 'mesh');
    this.meshConfigFile = join(root, 'mesh-config.yaml');
    cpSync(join(examples, 'mesh'), this.path, { recursive: true });
    cpSync(join(examples, 'mesh-config.yaml'), this.meshConfigFile);
    for (const file of readdirSync(this.path)) {
      this.edit(file, (text) => withPorts(text, ports).replaceAll(exampleCertificates, certificateDirectory));
    }
  }

  file(name: string): string {
    return join(this.path, name);
  }

  read(name: string): string {
    return readFileSync(this.file(name), 'utf8');
  }

  /**
   * Writes a file as most editors do: a new file, renamed over the old one.
   * @returns when the file was renamed: wall clock in milliseconds
   */
  write(name: string, text: string): number {
    const next = this.file(`.${name}.saving`);
    writeFileSync(next, text);
    renameSync(next, this.file(name));
    return performance.timeOrigin + performance.now();
  }

  requireMutualTls(): void {
    cpSync(join(this.#examples, 'strict'), this.path, { recursive: true });
  }

  /**
   * Changes a file's text.
   * @returns when the file was written
   */
  edit(name: string, change: (text: string) => string): number {
    return this.write(name, change(this.read(name)));
  }

  /**
   * Sets how many of a hundred requests each version receives.
   * @returns when the file was written
   */
  setWeights(weights: Weights): number {
    return this.edit('routes.yaml', (text) =>
      text.replace(/(subset: (v[12])\n\s+weight: )\d+/g, (_, prefix: string, version: keyof Weights) => {
        return `${prefix}${weights[version]}`;
      }),
    );
  }
}

function withPorts(text: string, ports: MeshPorts): string {
  return (Object.keys(ports) as (keyof MeshPorts)[])
    .reduce(
      // Replaces numbers by names first, because a new port may equal another port's old number.
      (result, name) => result.replaceAll(String(examplePorts[name]), `<${name}>`),
      text,
    )
    .replaceAll(/<(\w+)>/g, (placeholder, name: string) => String(ports[name as keyof MeshPorts] ?? placeholder));
}
