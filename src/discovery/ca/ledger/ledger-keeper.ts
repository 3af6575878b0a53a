/** Reports when a rotation stage may proceed and which workloads it waits for (`authority/ledger`). */

import { fromCallback } from 'xstate';
import type {
  AuthorityId,
  LeafCertificatesAwait,
  LeafCertificatesUnused,
  RootsAwait,
  RootsPending,
  RootsTrusted,
} from '../../../../machines/discovery/ca/authority-protocol.ts';
import { messageOf } from '../../../runtime/errors.ts';
import type { Logger } from '../../../runtime/output/log.ts';
import type { LedgerLog } from './ledger-log.ts';
import type {
  LedgerLine,
  MissingWorkloads,
  WorkloadEnds,
  WorkloadInstance,
  WorkloadLedger,
} from './workload-ledger.ts';

export interface LedgerKeeperOptions {
  readonly ledger: WorkloadLedger;
  /** `undefined` if the ledger is in memory only. */
  readonly log?: LedgerLog;
  /** Ledger IDs of an authority: its root's, then its own. */
  readonly idsOf: (authority: AuthorityId) => readonly AuthorityId[];
  /** When the distribution of the awaited roots began, Unix time in milliseconds. `undefined` if unknown. */
  readonly distributedSince: () => number | undefined;
  /** Serial number of the certificate that a connected workload reports to use. */
  readonly certificateInUse: (workload: WorkloadInstance) => string | undefined;
  readonly now: () => number;
  readonly logger: Pick<Logger, 'warn'>;
}

/** Events within this delay are coalesced. */
const settleMs = 200;
const progressIntervalMs = 10_000;

type LedgerOrder = RootsAwait | LeafCertificatesAwait;

export class LedgerKeeper {
  readonly #options: LedgerKeeperOptions;
  #onChange = (): void => {};
  #isLogBroken = false;
  #missingWorkloads: MissingWorkloads | undefined;

  constructor(options: LedgerKeeperOptions) {
    this.#options = options;
    const { ledger, log, now, logger } = options;
    const unreadableLines = log?.loadLedger(ledger, now()) ?? 0;
    if (unreadableLines > 0) logger.warn('ledger.linesUnreadable', { lines: unreadableLines });
  }

  get missingWorkloads(): MissingWorkloads | undefined {
    return this.#missingWorkloads?.count === 0 ? undefined : this.#missingWorkloads;
  }

  upcomingExpiries(maxCount: number): WorkloadEnds {
    const { ledger, now, certificateInUse } = this.#options;
    return ledger.upcomingExpiries(now(), maxCount, certificateInUse);
  }

  recordIssued(leaf: {
    identity: string;
    node: string;
    authority: AuthorityId;
    serialNumber: string;
    endsAt: number;
  }): void {
    this.#add({ issued: leaf });
  }

  /** Repeated reports are not written. */
  recordArrived(report: { identity: string; node: string; serialNumber: string }): void {
    if (this.#options.ledger.isNewArrival(report)) this.#add({ arrived: report });
  }

  /** Repeated reports are not written. */
  recordTrusted(workload: { identity: string; node: string; roots: readonly AuthorityId[] }): void {
    if (!this.#options.ledger.isReported(workload)) this.#add({ trusted: workload });
  }

  /** If these roots differ from the reported ones, the workload's trusted roots are unknown until the ACK. */
  recordSending(workload: { identity: string; node: string; roots: readonly AuthorityId[] }): void {
    if (!this.#options.ledger.isReported(workload)) this.recordTrusted({ ...workload, roots: [] });
  }

  effect() {
    return fromCallback<LedgerOrder, undefined>(({ receive, sendBack }) => {
      let awaitedOrder: LedgerOrder | undefined;
      let timer: NodeJS.Timeout | undefined;
      let lastProgressAt = Number.NEGATIVE_INFINITY;
      const check = (): void => {
        clearTimeout(timer);
        if (awaitedOrder === undefined) return;
        const now = this.#options.now();
        const missingWorkloads = this.#missingWorkloadsFor(awaitedOrder, now);
        this.#missingWorkloads = missingWorkloads;
        if (missingWorkloads.count === 0) {
          const previousOrder = awaitedOrder;
          awaitedOrder = undefined;
          this.#missingWorkloads = undefined;
          sendBack(completionEventOf(previousOrder));
          return;
        }
        if (now - lastProgressAt >= progressIntervalMs) {
          lastProgressAt = now;
          sendBack({
            type: 'roots.pending',
            missing: missingWorkloads.count,
            workloads: [...missingWorkloads.workloads],
          } satisfies RootsPending);
        }
        scheduleCheck(missingWorkloads.checkAgainAt - now);
      };
      const scheduleCheck = (ms: number): void => {
        clearTimeout(timer);
        timer = setTimeout(check, Math.max(settleMs, ms));
        timer.unref();
      };
      this.#onChange = () => {
        if (awaitedOrder !== undefined) scheduleCheck(settleMs);
      };
      receive((order) => {
        awaitedOrder = order;
        lastProgressAt = Number.NEGATIVE_INFINITY;
        const now = this.#options.now();
        // Calculates the workloads now, because the cached ones belong to the previous stage.
        this.#missingWorkloads = this.#missingWorkloadsFor(order, now);
        scheduleCheck(settleMs);
      });
      return () => {
        clearTimeout(timer);
        this.#onChange = () => {};
      };
    });
  }

  #missingWorkloadsFor(order: LedgerOrder, now: number): MissingWorkloads {
    const { ledger, idsOf, distributedSince } = this.#options;
    if (order.type === 'leaf-certificates.await') return ledger.missingRenewal(idsOf(order.authority), now);
    return ledger.missingTrust(order.roots, distributedSince() ?? now, now);
  }

  #add(ledgerLine: LedgerLine): void {
    const { ledger, log, now, logger } = this.#options;
    ledger.apply(ledgerLine);
    try {
      log?.add(ledgerLine, ledger, now());
      this.#isLogBroken = false;
    } catch (error) {
      if (!this.#isLogBroken) logger.warn('ledger.unwritable', { reason: messageOf(error) });
      this.#isLogBroken = true;
    }
    this.#onChange();
  }
}

function completionEventOf(order: LedgerOrder): RootsTrusted | LeafCertificatesUnused {
  return order.type === 'roots.await'
    ? { type: 'roots.trusted', roots: order.roots }
    : { type: 'leaf-certificates.unused', authority: order.authority };
}
