/** Detects when the page is idle; tests wait for that instead of for a fixed time. */
import { connection } from './connection.ts';
import { follows } from './place.ts';
import { playing } from './playing.ts';

/** Delayed updates (the announcement for screen readers, the address) happen within this time. */
const quietMs = 400;
const longestMs = 20_000;

/** Reasons for a busy page, by name. */
const indicators = new Map<string, () => boolean>([
  ['opening', () => connection.value.kind === 'opening'],
  ['playing', () => playing.value],
  ['animations', () => document.getAnimations().some(isRunning)],
]);

/** Adds a condition under which the page is busy. */
export function addIndicator(name: string, isBusy: () => boolean): void {
  indicators.set(name, isBusy);
}

/**
 * Resolves when nothing is pending and nothing has changed on the page for a while. Updates of the times of a live
 * program do not count.
 *
 * @throws Error after 20 s, with the pending activities
 */
export async function idle(): Promise<void> {
  const until = performance.now() + longestMs;
  let changedAt = performance.now();
  const observer = new MutationObserver(() => {
    changedAt = performance.now();
  });
  observer.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
  try {
    for (;;) {
      await new Promise(requestAnimationFrame);
      const now = performance.now();
      const busy = [...indicators].filter(([, isBusy]) => isBusy()).map(([name]) => name);
      if (busy.length > 0) changedAt = now;
      else if (follows.value || now - changedAt >= quietMs) return;
      if (now > until) throw new Error(`the page does not become idle: ${busy.join(', ') || 'it keeps changing'}`);
    }
  } finally {
    observer.disconnect();
  }
}

/** An endless animation shows a pending activity, which has its own indicator. */
function isRunning({ playState, effect }: Animation): boolean {
  return playState === 'running' && Number.isFinite(effect?.getComputedTiming().endTime);
}
