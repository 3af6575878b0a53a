/** What was drawn when: for tests, and for whoever measures. */

/** A record, and the `Date.now()` of the moment in which the frame that showed it was painted. */
export interface Drawn {
  readonly seq: number;
  readonly at: number;
}

const kept = 1_000;

/** The records that were drawn last while the trace was followed, oldest first. */
export const drawn: Drawn[] = [];

/** Takes note of records once the frame that is being made is on the screen. */
export function noteDrawn(seqs: readonly number[]): void {
  afterPaint(() => {
    const at = Date.now();
    for (const seq of seqs.slice(-kept)) drawn.push({ seq, at });
    if (drawn.length > kept) drawn.splice(0, drawn.length - kept);
  });
}

/** To be called in a frame: a message that is posted there is delivered when the frame has been painted. */
function afterPaint(then: () => void): void {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => {
    port1.close();
    then();
  };
  port2.postMessage(undefined);
}

/** Lets the page draw and take input, then goes on. */
export function nextTurn(): Promise<void> {
  return new Promise(afterPaint);
}
