/** `at` is `Date.now()` after the record was painted. */
export interface DrawnRecord {
  readonly seq: number;
  readonly at: number;
}

const maxDrawnRecords = 1_000;

/** Oldest first. */
export const drawnRecords: DrawnRecord[] = [];

export function recordDrawn(seqs: readonly number[]): void {
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

export function yieldToBrowser(): Promise<void> {
  return new Promise(runAfterPaint);
}
