/** Whether the page has come to rest: tests wait for that instead of for a time. */
import { connection } from './connection.ts';
import { follows } from './place.ts';
import { playing } from './playing.ts';

/** What is told late (the announcement for screen readers, the address) comes within that. */
const quietMs = 400;
const longestMs = 20_000;

/** What keeps the page busy, by its name. */
const indicators = new Map<string, () => boolean>([
  ['opening', () => connection.value.kind === 'opening'],
  ['playing', () => playing.value],
  ['animations', () => document.getAnimations().some(isRunning)],
]);

/** From now on it is asked as well whether this is so. */
export function addIndicator(name: string, isBusy: () => boolean): void {
  indicators.set(name, isBusy);
}

/**
 * Resolves when nothing is under way and nothing has changed on the page for a while. Of a program that is followed the
 * times go on: what they change does not count.
 *
 * @throws Error after 20 s, with what is still under way
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

/** One that never ends shows that something goes on, which has an indicator of its own. */
function isRunning({ playState, effect }: Animation): boolean {
  return playState === 'running' && Number.isFinite(effect?.getComputedTiming().endTime);
}
