import type { EpochReport } from '../../../machines/agent/protocol.ts';
import type { TraceRecord } from '../../runtime/trace/trace.ts';

export class RunningEpochs {
  readonly #names = new Set<string>();

  observe(record: TraceRecord): void {
    if (record.kind !== 'event' || record.to !== 'supervisor') return;
    const { type, name } = record.event as unknown as EpochReport;
    if (type === 'epoch.started') this.#names.add(name);
    else if (type === 'epoch.exited' || type === 'epoch.failed') this.#names.delete(name);
  }

  get newestName(): string | undefined {
    return [...this.#names].at(-1);
  }
}
