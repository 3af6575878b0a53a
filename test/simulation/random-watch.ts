/** The watch of the certificate directory in a random run: it can fail or hang, and the directory can be missing. */
import type { AnyActorRef } from 'xstate';
import { reportEvent } from '../../src/debugger/explore/scripted-effect.ts';

/** `fails`: immediately, at each setup. `hangs`: the directory was replaced, and the kernel never confirms a new watch. */
export type WatchFault = 'watch fails' | 'watch hangs' | 'directory gone';

const minuteMs = 60_000;
/** For backoffs that double from half a second. */
const maxSetUpsPerMinute = 8;

interface Watch {
  readonly self: AnyActorRef;
  /** Content at the last comparison. */
  lastContents: string | null;
  /** Whether the watch receives changes. */
  holdsEvents: boolean;
}

export class RandomWatch {
  readonly #contents: () => string;
  readonly #now: () => number;
  readonly #faults = new Set<WatchFault>();
  #watch: Watch | undefined;
  #setUps: number[] = [];

  /** @param now the agent's time */
  constructor(contents: () => string, now: () => number) {
    this.#contents = contents;
    this.#now = now;
  }

  /** @returns why the watch must not be set up now, if so */
  start(self: AnyActorRef, seenContents: string | null): string | undefined {
    this.#watch = { self, lastContents: seenContents, holdsEvents: false };
    if (this.#faults.has('directory gone')) reportEvent(self, { type: 'directory.missing' });
    else this.#setUp(this.#watch);
    const since = this.#now() - minuteMs;
    this.#setUps = [...this.#setUps.filter((at) => at > since), this.#now()];
    const { length } = this.#setUps;
    return length > maxSetUpsPerMinute ? `it was set up ${length} times within a minute` : undefined;
  }

  stop(self: AnyActorRef): void {
    if (this.#watch?.self === self) this.#watch = undefined;
  }

  /** The files have changed, possibly without an event. */
  notifyChange(): void {
    if (this.#watch?.holdsEvents === true) reportEvent(this.#watch.self, { type: 'files.changed', path: 'tls.crt' });
  }

  beginFault(fault: WatchFault): void {
    this.#faults.add(fault);
    const watch = this.#watch;
    if (watch === undefined) return;
    if (fault === 'directory gone') reportEvent(watch.self, { type: 'directory.missing' });
    else if (!watch.holdsEvents) return;
    else if (fault === 'watch fails') this.#fail(watch);
    else reportEvent(watch.self, { type: 'directory.found' });
    watch.holdsEvents = false;
  }

  endFault(fault: WatchFault): void {
    if (!this.#faults.delete(fault) || this.#watch === undefined || this.#watch.holdsEvents) return;
    // A kernel that has not responded never will: the chart has a limit for that.
    if (fault !== 'directory gone') return;
    reportEvent(this.#watch.self, { type: 'directory.found' });
    reportEvent(this.#watch.self, { type: 'files.changed', path: 'certs' });
    this.#setUp(this.#watch);
  }

  #setUp(watch: Watch): void {
    if (this.#faults.has('watch hangs')) return;
    const { lastContents } = watch;
    watch.lastContents = this.#contents();
    const isDifferentContents = lastContents !== null && lastContents !== watch.lastContents;
    if (isDifferentContents) reportEvent(watch.self, { type: 'files.changed', path: 'certs' });
    watch.holdsEvents = !this.#faults.has('watch fails');
    if (watch.holdsEvents) reportEvent(watch.self, { type: 'watch.began' });
    else this.#fail(watch);
  }

  #fail({ self }: Watch): void {
    reportEvent(self, { type: 'watch.failed', reason: 'ENOSPC', knownHash: this.#contents() });
  }
}
