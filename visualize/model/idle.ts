import { connection } from './connection.ts';
import { followsEnd } from './place.ts';
import { isPlaying } from './playing.ts';

/** Longer than the delays of address updates and screen reader announcements. */
const quietMs = 400;
const maxWaitMs = 20_000;

const indicators = new Map<string, () => boolean>([
  ['opening', () => connection.value.kind === 'opening'],
  ['playing', () => isPlaying.value],
  ['animations', () => document.getAnimations().some(isRunning)],
]);

export function addIndicator(name: string, isBusy: () => boolean): void {
  indicators.set(name, isBusy);
}

/**
 * Ignores the clock of a live program.
 *
 * @throws Error after 20 s, with the pending activities
 */
export async function waitUntilIdle(): Promise<void> {
  const deadline = performance.now() + maxWaitMs;
  let changedAt = performance.now();
  const observer = new MutationObserver(() => {
    changedAt = performance.now();
  });
  observer.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
  try {
    for (;;) {
      await new Promise(requestAnimationFrame);
      const nowMs = performance.now();
      const busyIndicators = [...indicators].filter(([, isBusy]) => isBusy()).map(([name]) => name);
      if (busyIndicators.length > 0) changedAt = nowMs;
      else if (followsEnd.value || nowMs - changedAt >= quietMs) return;
      if (nowMs > deadline)
        throw new Error(`the page does not become idle: ${busyIndicators.join(', ') || 'it keeps changing'}`);
    }
  } finally {
    observer.disconnect();
  }
}

/** An endless animation shows an activity that has its own indicator. */
function isRunning({ playState, effect }: Animation): boolean {
  return playState === 'running' && Number.isFinite(effect?.getComputedTiming().endTime);
}
