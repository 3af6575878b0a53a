/**
 * Writes conditions about distribution to the status of Istio objects, and keeps other fields. The leader writes all conditions. Each other replica
 * reports rejections by its own proxies, under its presence Lease. See machines/discovery/sequences/distribution.mmd.
 */

import { configKeyText, parseConfigKey } from '../../../model/config/config.ts';
import type { KindName } from '../../../model/kinds/index.ts';
import type { Logger } from '../../../runtime/output/log.ts';
import type { ObjectDistribution } from '../../distribution/distribution.ts';
import {
  conditionsOf,
  decidedConditions,
  type ObjectCondition,
  type ObjectFindings,
  rejectedCondition,
  rejectedConditionOf,
} from '../../distribution/object-findings.ts';
import { reportAnnotation } from '../../distribution/replica-report.ts';
import { resourceOf } from '../../kubernetes/api-resource.ts';
import type { InformerEffects } from '../../kubernetes/api-server.effects.ts';
import type { ApiServer } from '../../kubernetes/api-server.ts';
import { parseReport, type RejectionReport, type RejectionReports, signMessage } from './rejection-reports.ts';
import { withConditions } from './status-conditions.ts';
import {
  type DesiredStatus,
  type StatusFields,
  type StatusRef,
  type StatusSource,
  StatusWriter,
} from './status-writer.ts';

/** Istio's Lease for this duty. Revisions share it, because their proxies may use the same objects. */
export const statusLease = 'istio-status-leader';

type DistributionView = Pick<ObjectDistribution, 'findingsOf' | 'unfinishedKeys' | 'compareAllStatuses'>;

abstract class ReportingStatus implements StatusSource {
  protected readonly distribution: DistributionView;
  protected readonly reports: RejectionReports;

  constructor(distribution: DistributionView, reports: RejectionReports) {
    this.distribution = distribution;
    this.reports = reports;
  }

  abstract desiredStatus(statusRef: StatusRef): DesiredStatus | undefined;

  allRefs(): Iterable<StatusRef> {
    return [...this.distribution.unfinishedKeys].map(parseConfigKey);
  }

  /** Whether to keep another replica's report: the replica is running, and the report is about the current version or a newer one. */
  protected isKeptReport(
    key: string,
    rejectionReport: RejectionReport | undefined,
    { distribution }: ObjectFindings,
  ): boolean {
    if (
      rejectionReport === undefined ||
      this.reports.isOwnReport(rejectionReport) ||
      this.reports.isEnded(key, rejectionReport)
    )
      return false;
    return distribution === undefined || rejectionReport.generation >= distribution.generation;
  }

  protected signRejection(condition: ObjectCondition): ObjectCondition {
    const { type, message } = condition;
    return type === rejectedCondition
      ? { ...condition, message: signMessage(message, this.reports.identity) }
      : condition;
  }
}

export class DistributionStatus extends ReportingStatus {
  /** Changes from before this term are unknown, so all statuses are compared. */
  override allRefs(): Iterable<StatusRef> {
    this.distribution.compareAllStatuses();
    return super.allRefs();
  }

  desiredStatus(statusRef: StatusRef): DesiredStatus | undefined {
    const key = configKeyText(statusRef);
    const findings = omitOwnCounts(this.distribution.findingsOf(key));
    const generation = findings.error?.generation ?? findings.distribution?.generation ?? findings.generation;
    const desiredConditions = decidedConditions(findings);
    if (generation === undefined || desiredConditions.length === 0) return undefined;
    return {
      generation,
      next: (currentStatus, time): StatusFields => {
        const isKeptByOther = this.isKeptReport(key, parseReport(currentStatus.conditions), findings);
        const conditions = conditionsOf(findings, isKeptByOther).map((condition) => this.signRejection(condition));
        const types = [...conditions.map(({ type }) => type), ...(isKeptByOther ? [rejectedCondition] : [])];
        const obsoleteTypes = desiredConditions.filter((type) => !types.includes(type));
        // For a rejected object, a condition may be about the previous version, which still applies.
        const nextConditions = [
          ...Map.groupBy(conditions, ({ observedGeneration }) => observedGeneration),
        ].reduce<unknown>(
          (previous, [generationKey, ownConditions]) =>
            withConditions(previous, ownConditions, { generation: generationKey, time }),
          withConditions(currentStatus.conditions, [], { generation, time }, obsoleteTypes),
        );
        return { ...currentStatus, conditions: nextConditions };
      },
    };
  }
}

/** Counts from before the term do not include the proxies of other replicas. */
function omitOwnCounts({ distribution, ...findings }: ObjectFindings): ObjectFindings {
  return distribution === undefined || distribution.isOwnOnly ? findings : { ...findings, distribution };
}

/** A replica that is not the leader reports only rejections by its own proxies. */
export class FollowerStatus extends ReportingStatus {
  desiredStatus(statusRef: StatusRef): DesiredStatus | undefined {
    const key = configKeyText(statusRef);
    const findings = this.distribution.findingsOf(key);
    const ownRejection = rejectedConditionOf(findings.distribution);
    const generation = findings.error?.generation ?? findings.distribution?.generation;
    const previousReport = this.reports.reportOf(key);
    // Avoids reading the object in most cases. If this replica's own report is received later, it triggers another call.
    const mayWrite =
      ownRejection !== undefined || (previousReport !== undefined && this.#isObsolete(key, previousReport));
    if (generation === undefined || !mayWrite) return undefined;
    return {
      generation,
      next: (currentStatus, time): StatusFields | undefined => {
        const rejectionReport = parseReport(currentStatus.conditions);
        if (this.isKeptReport(key, rejectionReport, findings)) return undefined;
        const isObsolete =
          ownRejection === undefined && rejectionReport !== undefined && this.#isObsolete(key, rejectionReport);
        if (ownRejection === undefined && !isObsolete) return undefined;
        const conditionMoment = { generation: ownRejection?.observedGeneration ?? generation, time };
        const ownConditions = ownRejection === undefined ? [] : [this.signRejection(ownRejection)];
        const conditions = withConditions(
          currentStatus.conditions,
          ownConditions,
          conditionMoment,
          isObsolete ? [rejectedCondition] : [],
        );
        return { ...currentStatus, conditions };
      },
    };
  }

  #isObsolete(key: string, rejectionReport: RejectionReport): boolean {
    return this.reports.isOwnReport(rejectionReport) || this.reports.isEnded(key, rejectionReport);
  }
}

export interface StatusWriterSources {
  readonly distribution: ObjectDistribution;
  readonly reports: RejectionReports;
  readonly informers: Pick<InformerEffects, 'servedResource'>;
  readonly server: Pick<ApiServer, 'request'>;
  readonly log: Pick<Logger, 'warn'>;
  readonly presence: string;
  readonly isLeaderOf: (lease: string) => boolean;
}

/** Minimum interval of non-urgent writes of an object. */
const pauseMs = 10_000;

export function statusDutiesOf(sources: StatusWriterSources): readonly [leading: StatusWriter, follower: StatusWriter] {
  const { distribution, reports, informers, server, log, presence, isLeaderOf } = sources;
  const resource = (kind: string) => informers.servedResource(resourceOf(kind as KindName));
  const writerOptions = { server, pauseMs, log, resourceOf: resource };
  const distributionWriter = new StatusWriter({
    ...writerOptions,
    lease: statusLease,
    source: new DistributionStatus(distribution, reports),
  });
  const follower = new StatusWriter({
    ...{ ...writerOptions, lease: presence, source: new FollowerStatus(distribution, reports) },
    isHeld: () => isLeaderOf(statusLease),
    leaseAnnotations: () => ({ [reportAnnotation]: distribution.report() }),
  });
  distribution.onDue((keys, isUrgent) => {
    const refs = keys.map(parseConfigKey);
    for (const duty of [distributionWriter, follower]) duty.markDue(refs, { urgent: isUrgent });
  });
  reports.onChanged((key, previous) => {
    if (isActionRequired(reports, key, previous, distribution.findingsOf(key))) distribution.repeatReport(key);
  });
  reports.onCountNeeded((key) => {
    if (!isLeaderOf(statusLease)) distribution.recount(key);
  });
  return [distributionWriter, follower];
}

/** False for a report of this replica that is still valid. */
function isActionRequired(
  reports: RejectionReports,
  key: string,
  previous: RejectionReport | undefined,
  findings: ObjectFindings,
): boolean {
  const rejectionReport = reports.reportOf(key);
  const isReportedByOther = [previous, rejectionReport].some(
    (statusReport) => statusReport !== undefined && !reports.isOwnReport(statusReport),
  );
  return isReportedByOther || (rejectionReport !== undefined) !== (findings.distribution?.rejection !== undefined);
}
