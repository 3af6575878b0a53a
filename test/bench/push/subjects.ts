/** Meshes of any number of services, and the servers over them. */
import { print } from '../bench-run.ts';
import type { Programs } from '../programs.ts';
import { BenchMesh, endpointsEach, type MeshFlavor, type MeshVariety, noVariety } from './mesh-files.ts';
import {
  buildGoControlPlane,
  type PilotOptions,
  type PushServer,
  type StartServer,
  saveResources,
  startGoControlPlane,
  startPilot,
} from './servers.ts';

export type StartPilot = (options: PilotOptions) => Promise<PushServer>;

export interface Subject {
  readonly mesh: BenchMesh;
  readonly startPilot: StartPilot;
  /** Undefined: Go is not there. */
  readonly startGo: StartServer | undefined;
}

export class Subjects {
  readonly #programs: Programs;
  readonly #flavor: MeshFlavor;
  readonly #pilot: string | undefined;
  readonly #known = new Map<string, Subject>();
  readonly #goExecutable: string | undefined;

  /** @param pilot an executable instead of the one in `bin/` */
  constructor(programs: Programs, flavor: MeshFlavor, pilot: string | undefined) {
    this.#programs = programs;
    this.#flavor = flavor;
    this.#pilot = pilot;
    const built = buildGoControlPlane(programs);
    if ('executable' in built) this.#goExecutable = built.executable;
    else print(`without go-control-plane and its ratios: ${built.reason}`);
  }

  /** @param variety absent: one namespace of services, for which go-control-plane has the very same resources */
  async of(services: number, variety: MeshVariety = noVariety): Promise<Subject> {
    const key = JSON.stringify([services, variety]);
    const subject = this.#known.get(key) ?? (await this.#make(services, variety));
    this.#known.set(key, subject);
    return subject;
  }

  async #make(services: number, variety: MeshVariety): Promise<Subject> {
    const programs = this.#programs;
    const size = { services, endpoints: endpointsEach, flavor: this.#flavor, variety };
    const mesh = new BenchMesh(`${programs.root}/mesh-${services}-${this.#known.size}`, size);
    const start: StartPilot = (options) => startPilot(programs, mesh, { executable: this.#pilot, ...options });
    const executable = this.#goExecutable;
    if (executable === undefined || variety !== noVariety) return { mesh, startPilot: start, startGo: undefined };
    const resources = await saveResources(programs, services, () => start({ debounce: '1ms' }));
    return { mesh, startPilot: start, startGo: () => startGoControlPlane(programs, executable, resources) };
  }
}
