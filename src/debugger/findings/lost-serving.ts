import { actorText, durationText, text } from '../../runtime/findings/words.ts';
import type { TraceRecord } from '../../runtime/trace/trace.ts';
import type { Finding, FindingRule, RuleRun, Run } from './finding.ts';
import { Serving, servingEvents } from './serving.ts';

/** The serving Envoy, or a draining one, exited without an order. */
export const lostServingRule: FindingRule = {
  name: 'lost serving',
  reads: { events: [...servingEvents, 'supervisor.stop', 'supervisor.stop-now', 'epoch.failed'], kinds: ['stop'] },
  begin: () => new LostServingRun(),
};

class LostServingRun implements RuleRun {
  readonly #servingState = new Serving();
  /** Whether the agent was ordered to stop or is exiting. */
  #isStopping = false;

  onRecord(record: TraceRecord, index: number): Finding[] | undefined {
    const servingName = this.#servingState.name;
    this.#servingState.addRecord(record, index);
    this.#isStopping ||= isStopRecord(record) || (record.kind === 'stop' && record.actor === 'supervisor');
    if (record.kind !== 'event' || record.event.type !== 'epoch.failed' || record.to !== 'supervisor') return undefined;
    const { name, during, reason } = record.event;
    if (during !== 'serving' && during !== 'draining') return undefined;
    const epochName = actorText(text(name));
    const failureText = `${epochName} failed while ${during}`;
    const suffix =
      during === 'draining' && servingName !== undefined
        ? `; ${actorText(servingName)} still serves and will be replaced`
        : '';
    return [
      {
        rule: 'lost serving',
        weight: 'bad',
        sentence: `${failureText}: ${text(reason)}${suffix}`,
        index,
        range: [index, index],
        root: index,
      },
    ];
  }

  end(run: Run): Finding[] | undefined {
    const { lostAt, lostIndex } = this.#servingState;
    const lastRecord = run.recordAt(run.length - 1);
    if (this.#isStopping || lostAt === undefined || lastRecord === undefined) return undefined;
    return [
      {
        rule: 'lost serving',
        weight: 'bad',
        sentence: `no Envoy serves in the last ${durationText(lastRecord.t - lostAt)} of the trace`,
        index: lostIndex,
        range: [lostIndex, run.length - 1],
        root: lostIndex,
      },
    ];
  }
}

function isStopRecord(record: TraceRecord): boolean {
  return (
    record.kind === 'event' && (record.event.type === 'supervisor.stop' || record.event.type === 'supervisor.stop-now')
  );
}
