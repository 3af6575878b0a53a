/** Why the control plane is not ready, for a person who asks. */
import type { Recorder } from '../../runtime/trace/recorder.ts';
import type { TraceRecord } from '../../runtime/trace/trace.ts';

/** Follows the chart of `discovery`: the name of its state is what it waits for. */
export class StartProgress {
  #state = '';
  #registries: readonly string[] = [];

  /** One line; empty when nothing is known. */
  get text(): string {
    if (this.#state === '') return '';
    const awaited =
      this.#registries.length > 0 ? `, waiting for the first list of registry ${this.#registries.join(', ')}` : '';
    return `not ready: ${this.#state}${awaited}\n`;
  }

  /** @returns how to stop */
  observe(recorder: Recorder): () => void {
    return recorder.observe((record) => this.#note(record));
  }

  #note(record: TraceRecord): void {
    if (record.kind === 'transition' && record.actor === 'discovery') {
      this.#state = record.to.slice(record.to.lastIndexOf('.') + 1);
      this.#registries = [];
    } else if (record.kind === 'event' && record.to === 'discovery' && record.event.type === 'services.awaited') {
      this.#registries = record.event.registries as string[];
    }
  }
}
