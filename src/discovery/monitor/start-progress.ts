import type { Recorder } from '../../runtime/trace/recorder.ts';
import type { TraceRecord } from '../../runtime/trace/trace.ts';

/** Derives the unmet startup condition from the state of the chart `discovery`. */
export class StartProgress {
  #state = '';
  #awaitedText = '';

  /** Empty if unknown. */
  get text(): string {
    if (this.#state === '') return '';
    return `not ready: ${this.#state}${this.#awaitedText}\n`;
  }

  /**
   * @param awaitedText unmet condition of the cluster
   * @param conditions problems of other registries, one per line
   */
  describeProgress(awaitedText: string, conditions: readonly string[] = []): string {
    const text =
      awaitedText === '' ? this.text : this.text.replace(/\n$/, ` (Kubernetes: waiting for ${awaitedText})\n`);
    return text + conditions.map((condition) => `${condition}\n`).join('');
  }

  observe(recorder: Recorder): () => void {
    return recorder.observe((record) => this.#observeRecord(record));
  }

  #observeRecord(record: TraceRecord): void {
    if (record.kind === 'transition' && record.actor === 'discovery') {
      this.#state = record.to.slice(record.to.lastIndexOf('.') + 1);
      this.#awaitedText = '';
    } else if (record.kind === 'event' && record.to === 'discovery') {
      const { type, registries, sources } = record.event;
      if (type === 'services.pending') this.#awaitedText = `, waiting for registry ${namesOf(registries)}`;
      if (type === 'configs.pending') this.#awaitedText = `, waiting for configuration source ${namesOf(sources)}`;
    }
  }
}

function namesOf(names: unknown): string {
  return (names as string[]).join(', ');
}
