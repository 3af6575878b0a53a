/** Meshes of any size, and their servers. */
import { print } from '../bench-run.ts';
import type { Programs } from '../programs.ts';
import { BenchMesh, endpointsPerService, type MeshFlavor, type MeshVariety, noVariety } from './mesh-files.ts';
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

export interface MeasuredServers {
  readonly mesh: BenchMesh;
  readonly startPilot: StartPilot;
  /** Absent if Go is missing or the comparison is off. */
  readonly startGo: StartServer | undefined;
}

export interface SubjectsOptions {
  readonly flavor: MeshFlavor;
  /** Executable that replaces the one in `bin/`. */
  readonly pilot: string | undefined;
  /** Whether go-control-plane is measured, too. */
  readonly withGo: boolean;
}

export class AllMeasuredServers {
  readonly #programs: Programs;
  readonly #options: SubjectsOptions;
  readonly #serversBySize = new Map<string, MeasuredServers>();
  #goBuild: { readonly executable?: string } | undefined;

  constructor(programs: Programs, options: SubjectsOptions) {
    this.#programs = programs;
    this.#options = options;
  }

  /** Builds the server for the first mesh that it can serve; `undefined` if the build fails. */
  #goExecutable(): string | undefined {
    if (!this.#options.withGo) return undefined;
    if (this.#goBuild === undefined) {
      const built = buildGoControlPlane(this.#programs);
      if ('reason' in built) print(`go-control-plane cannot be built (--without-go leaves it out): ${built.reason}`);
      this.#goBuild = 'reason' in built ? {} : built;
    }
    return this.#goBuild.executable;
  }

  /** @param variety default: a mesh with one namespace, for which go-control-plane has the same resources */
  async serversFor(services: number, variety: MeshVariety = noVariety): Promise<MeasuredServers> {
    const key = JSON.stringify([services, variety]);
    const subject = this.#serversBySize.get(key) ?? (await this.#startServers(services, variety));
    this.#serversBySize.set(key, subject);
    return subject;
  }

  async #startServers(services: number, variety: MeshVariety): Promise<MeasuredServers> {
    const programs = this.#programs;
    const size = { services, endpoints: endpointsPerService, flavor: this.#options.flavor, variety };
    const mesh = new BenchMesh(`${programs.root}/mesh-${services}-${this.#serversBySize.size}`, size);
    const start: StartPilot = (options) => startPilot(programs, mesh, { executable: this.#options.pilot, ...options });
    const executable = variety === noVariety ? this.#goExecutable() : undefined;
    if (executable === undefined) return { mesh, startPilot: start, startGo: undefined };
    const resources = await saveResources(programs, services, () => start({ debounce: '1ms' }));
    return { mesh, startPilot: start, startGo: () => startGoControlPlane(programs, executable, resources) };
  }
}
