import type { WorkloadEvent } from '../../model/services/workload.ts';
import type { ServiceEvent, ServiceHandler, WorkloadHandler } from './registry.ts';

export class RegistryHandlers {
  readonly #services: ServiceHandler[] = [];
  readonly #workloads: WorkloadHandler[] = [];
  #state: 'built' | 'running' | 'stopped' = 'built';

  get isRunning(): boolean {
    return this.#state === 'running';
  }

  appendServiceHandler(handler: ServiceHandler): void {
    this.#assertNotRunning();
    this.#services.push(handler);
  }

  appendWorkloadHandler(handler: WorkloadHandler): void {
    this.#assertNotRunning();
    this.#workloads.push(handler);
  }

  run(): void {
    if (this.#state !== 'built') throw new Error(`a registry that is ${this.#state} cannot be run`);
    this.#state = 'running';
  }

  stop(): void {
    this.#state = 'stopped';
  }

  notifyService(event: ServiceEvent): void {
    if (this.isRunning) for (const handler of this.#services) handler(event);
  }

  notifyWorkload(event: WorkloadEvent): void {
    if (this.isRunning) for (const handler of this.#workloads) handler(event);
  }

  #assertNotRunning(): void {
    if (this.#state !== 'built') throw new Error('handlers must be added before the registry is run');
  }
}
