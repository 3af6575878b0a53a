import type {
  AdsRequest,
  AdsStreamReport,
  ResponseSent,
  ResponseSkipped,
} from '../../../../machines/discovery/xds/ads-protocol.ts';
import { maxRetainedClusters } from '../../../../machines/discovery/xds/cluster-removal.ts';
import { messageOf } from '../../../runtime/errors.ts';
import type { Logger } from '../../../runtime/output/log.ts';
import { shortenText } from './client-text.ts';
import { RepeatedLines } from './repeated-lines.ts';
import type { StreamContext } from './stream-context.ts';

/** Truncates texts of clients, and combines repeated warnings. */
export class StreamLog {
  readonly #context: StreamContext;
  readonly #peer: string;
  readonly #node: () => string;
  readonly #repeatedLines: RepeatedLines;

  /** @param node ID; empty while it is unknown */
  constructor(context: StreamContext, peer: string, node: () => string) {
    this.#context = context;
    this.#peer = peer;
    this.#node = node;
    this.#repeatedLines = new RepeatedLines({ warn: (event, fields) => this.#logger.warn(event, fields) }, context.now);
  }

  /** The logger is created on demand, because one for each stream would need more memory than the other fields. */
  get #logger(): Logger {
    const { logger } = this.#context;
    return logger.levels.hasProxies ? logger.ofProxy(this.#node().split('~')[2] ?? '') : logger;
  }

  logRequest(request: AdsRequest): void {
    const logger = this.#logger;
    if (!logger.enabled('debug')) return;
    const { typeUrl, nonce, rejection } = request;
    const names = (request.protocol === 'sotw' ? request.names : request.subscribe).length;
    const unsubscribedCount = request.protocol === 'delta' ? request.unsubscribe.length : 0;
    logger.debug('request.received', {
      ...{ node: shortenText(this.#node()), typeUrl: shortenText(typeUrl), nonce: shortenText(nonce), names },
      ...(unsubscribedCount > 0 && { unsubscribed: unsubscribedCount }),
      ...(rejection !== null && { rejection: shortenText(rejection) }),
    });
  }

  logOutcome(report: AdsStreamReport): void {
    if (report.type === 'response.sent' || report.type === 'response.skipped') this.#logResponse(report);
    else this.#rollout(report);
  }

  #logResponse({ type, sentAt: _, ...fields }: (ResponseSent | ResponseSkipped) & { sentAt?: number }): void {
    const logger = this.#logger;
    if (logger.enabled('debug')) logger.debug(type, { node: shortenText(this.#node()), ...fields });
  }

  logUnauthenticated(reason: string): void {
    this.#logger.warn('peer.unauthenticated', { peer: this.#peer, reason });
  }

  logRejected(code: string, reason: string): void {
    this.#repeatedLines.warn('rejected', 'workload.rejected', { peer: this.#peer, code, reason });
  }

  logRejection(reason: string): void {
    this.#logger.warn('node.refused', { peer: this.#peer, reason });
  }

  logForbidden(node: string, reason: string): void {
    this.#logger.warn('node.forbidden', { node: shortenText(node), peer: this.#peer, reason });
  }

  unreadableNode(error: unknown): void {
    this.#logger.debug('node.unreadable', { peer: this.#peer, reason: shortenText(messageOf(error)) });
  }

  #rollout(report: AdsStreamReport): void {
    const { observer } = this.#context;
    if (report.type === 'clusters.abandoned') {
      observer.clustersAbandoned?.(report.clusters.length);
      const node = shortenText(this.#node());
      this.#repeatedLines.warn('abandoned', 'clusters.abandoned', {
        node,
        clusters: shortenText(report.clusters.join(', ')),
      });
    } else if (report.type === 'clusters.evicted') {
      observer.clustersEvicted?.(report.clusters.length);
      this.#repeatedLines.warn('evicted', 'clusters.evicted', {
        node: shortenText(this.#node()),
        maxClusters: maxRetainedClusters,
        removed: report.clusters.length,
      });
    }
  }

  logClass(typeUrl: string, result: string, reason: string): void {
    const { observer } = this.#context;
    const node = this.#node();
    const fields = { node: shortenText(node), typeUrl };
    if (result === 'rejection') {
      observer.responseRejected?.(typeUrl, node, reason);
      const facts = { ...fields, peer: this.#peer, reason: shortenText(reason) };
      this.#repeatedLines.warn(`rejection ${typeUrl}`, 'request.judged.rejection', facts);
    } else if (result === 'stale') {
      observer.nonceExpired?.(typeUrl, node);
      this.#logger.debug('request.judged.stale', fields);
    } else if (result === 'misuse') {
      this.#repeatedLines.warn('misuse', 'request.judged.misuse', fields);
    } else {
      this.#repeatedLines.warn('unserved', 'request.judged.unserved', fields);
    }
  }

  sourceFailed(error: unknown): void {
    const node = this.#node();
    this.#context.observer.sourceFailed?.('', node, error);
    this.#logger.error('resources.failed', { node: shortenText(node), reason: shortenText(messageOf(error)) });
  }

  logFailed(error: unknown): void {
    this.#logger.error('stream.failed', { peer: this.#peer, error: (error as Error).stack });
  }

  end(): void {
    this.#repeatedLines.end();
  }
}
