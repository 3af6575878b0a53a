/** The effect `authority/ledger`: says when what the authority waits for has come, and who is missing. */

import { fromCallback } from 'xstate';
import type {
  AuthorityId,
  BundleAwait,
  BundleAwaited,
  BundleTrusted,
  LeavesAwait,
  LeavesEnded,
} from '../../../../machines/discovery/ca/authority-protocol.ts';
import { messageOf } from '../../../runtime/errors.ts';
import type { Logger } from '../../../runtime/output/log.ts';
import type { LedgerLog } from './ledger-log.ts';
import {
  type LedgerLine,
  type Missing,
  textOfRoots,
  type WorkloadEnds,
  type WorkloadLedger,
} from './workload-ledger.ts';

export interface LedgerKeeperOptions {
  readonly ledger: WorkloadLedger;
  /** Absent: what is known is lost with the process, as the authority in memory is. */
  readonly log?: LedgerLog;
  /** What an authority is called in the ledger: by its root, or by itself. */
  readonly idsOf: (authority: AuthorityId) => readonly AuthorityId[];
  readonly now: () => number;
  readonly logger: Pick<Logger, 'warn'>;
}

/** What came together is looked at together. */
const settleMs = 200;
/** A person is told of other numbers no more often. */
const toldEveryMs = 10_000;

type Order = BundleAwait | LeavesAwait;

export class LedgerKeeper {
  readonly #options: LedgerKeeperOptions;
  #changed = (): void => {};
  /** By the roots that are waited for: since when they are given out. */
  readonly #since = new Map<string, number>();
  #isLogBroken = false;
  /** Of what is waited for now; for the debug page. */
  #missing: Missing | undefined;

  constructor(options: LedgerKeeperOptions) {
    this.#options = options;
    const { ledger, log, now, logger } = options;
    const unreadable = log?.readInto(ledger, now()) ?? 0;
    if (unreadable > 0) logger.warn('ledger.linesUnreadable', { lines: unreadable });
  }

  get missing(): Missing | undefined {
    return this.#missing?.count === 0 ? undefined : this.#missing;
  }

  /** As {@link WorkloadLedger.ends}. */
  ends(max: number): WorkloadEnds {
    return this.#options.ledger.ends(this.#options.now(), max);
  }

  /** A certificate was handed out. */
  issued(leaf: { identity: string; node: string; authority: AuthorityId; serialNumber: string; endsAt: number }): void {
    this.#add({ issued: leaf });
  }

  /** A workload says that its Envoy has this one. Said again it is nothing new, and not written. */
  arrived(word: { identity: string; node: string; serialNumber: string }): void {
    if (this.#options.ledger.isNews(word)) this.#add({ arrived: word });
  }

  /** A workload says that it trusts these roots and no others of ours. Said again it is nothing new, and not written. */
  trusted(workload: { identity: string; node: string; roots: readonly AuthorityId[] }): void {
    if (!this.#options.ledger.hasWord(workload)) this.#add({ trusted: workload });
  }

  /** A workload is sent these roots: until it says that it trusts them nobody knows which it trusts, but for the same ones. */
  sending(workload: { identity: string; node: string; roots: readonly AuthorityId[] }): void {
    if (!this.#options.ledger.hasWord(workload)) this.trusted({ ...workload, roots: [] });
  }

  effect() {
    return fromCallback<Order, undefined>(({ receive, sendBack }) => {
      let awaited: Order | undefined;
      let timer: NodeJS.Timeout | undefined;
      let toldAt = Number.NEGATIVE_INFINITY;
      const look = (): void => {
        clearTimeout(timer);
        if (awaited === undefined) return;
        const now = this.#options.now();
        const missing = this.#missingFor(awaited, now);
        this.#missing = missing;
        if (missing.count === 0) {
          const order = awaited;
          awaited = undefined;
          this.#missing = undefined;
          sendBack(answerTo(order));
          return;
        }
        if (now - toldAt >= toldEveryMs) {
          toldAt = now;
          sendBack({
            type: 'bundle.awaited',
            missing: missing.count,
            workloads: [...missing.workloads],
          } satisfies BundleAwaited);
        }
        lookAfter(missing.lookAgainAt - now);
      };
      const lookAfter = (ms: number): void => {
        clearTimeout(timer);
        timer = setTimeout(look, Math.max(settleMs, ms));
        timer.unref();
      };
      this.#changed = () => {
        if (awaited !== undefined) lookAfter(settleMs);
      };
      receive((order) => {
        awaited = order;
        toldAt = Number.NEGATIVE_INFINITY;
        const now = this.#options.now();
        if (order.type === 'bundle.await') this.#since.set(textOfRoots(order.roots), now);
        // A question from now on is answered for this stage, and not for those whom the one before waited for.
        this.#missing = this.#missingFor(order, now);
        lookAfter(settleMs);
      });
      return () => {
        clearTimeout(timer);
        this.#changed = () => {};
      };
    });
  }

  #missingFor(order: Order, now: number): Missing {
    const { ledger, idsOf } = this.#options;
    if (order.type === 'leaves.await') return ledger.missingRenewal(idsOf(order.authority), now);
    return ledger.missingTrust(order.roots, this.#since.get(textOfRoots(order.roots)) ?? now, now);
  }

  #add(line: LedgerLine): void {
    const { ledger, log, now, logger } = this.#options;
    ledger.apply(line);
    try {
      log?.add(line, ledger, now());
      this.#isLogBroken = false;
    } catch (error) {
      if (!this.#isLogBroken) logger.warn('ledger.unwritable', { reason: messageOf(error) });
      this.#isLogBroken = true;
    }
    this.#changed();
  }
}

function answerTo(order: Order): BundleTrusted | LeavesEnded {
  return order.type === 'bundle.await'
    ? { type: 'bundle.trusted', roots: order.roots }
    : { type: 'leaves.ended', authority: order.authority };
}
