/** Records the times at which trace records were drawn, for tests and measurements. */

/** `seq` of a record, and `Date.now()` after its frame was painted. */
export interface DrawnRecord {
  readonly seq: number;
  readonly at: number;
}

const maxDrawnRecords = 1_000;

/** Records that were drawn most recently while following the trace, oldest first. */
export const drawnRecords: DrawnRecord[] = [];

/** Adds records after the current frame was painted. */
export function noteDrawn(seqs: readonly number[]): void {
  runAfterPaint(() => {
    const drawnAtMs = Date.now();
    for (const seq of seqs.slice(-maxDrawnRecords)) drawnRecords.push({ seq, at: drawnAtMs });
    if (drawnRecords.length > maxDrawnRecords) drawnRecords.splice(0, drawnRecords.length - maxDrawnRecords);
  });
}

/** Must be called in a frame: a message posted there is delivered after painting. */
function runAfterPaint(callback: () => void): void {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => {
    port1.close();
    callback();
  };
  port2.postMessage(undefined);
}

/** Lets the page draw and handle input before it continues. */
export function yieldToBrowser(): Promise<void> {
  return new Promise(runAfterPaint);
}
