/** Why the control plane is not ready, for a person who asks. */
import type { Recorder } from '../../runtime/trace/recorder.ts';
import type { TraceRecord } from '../../runtime/trace/trace.ts';

/** Follows the chart of `discovery`: the name of its state is what it waits for. */
export class StartProgress {
  #state = '';
  /** What the state waits for, by name. */
  #awaited = '';

  /** What the start waits for, in one line; empty when nothing is known. */
  get text(): string {
    if (this.#state === '') return '';
    return `not ready: ${this.#state}${this.#awaited}\n`;
  }

  /**
   * @param awaited of the cluster, where one is followed: what of it has not come yet; empty: all of it has
   * @param conditions what is wrong with other registries, a line each
   */
  textWith(awaited: string, conditions: readonly string[] = []): string {
    const text = awaited === '' ? this.text : this.text.replace(/\n$/, ` (Kubernetes: waiting for ${awaited})\n`);
    return text + conditions.map((line) => `${line}\n`).join('');
  }

  /** @returns how to stop */
  observe(recorder: Recorder): () => void {
    return recorder.observe((record) => this.#note(record));
  }

  #note(record: TraceRecord): void {
    if (record.kind === 'transition' && record.actor === 'discovery') {
      this.#state = record.to.slice(record.to.lastIndexOf('.') + 1);
      this.#awaited = '';
    } else if (record.kind === 'event' && record.to === 'discovery') {
      const { type, registries, sources } = record.event;
      if (type === 'services.awaited') this.#awaited = `, waiting for registry ${namesOf(registries)}`;
      if (type === 'configs.awaited') this.#awaited = `, waiting for configuration source ${namesOf(sources)}`;
    }
  }
}

function namesOf(names: unknown): string {
  return (names as string[]).join(', ');
}
