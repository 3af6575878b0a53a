/** The webhook `/validate` returns the errors and warnings of `pilot-discovery validate`. */
import {
  type AdmissionReview,
  alwaysRejectAnnotation,
  invalidReview,
  noRequest,
  noReviewMessage,
  type ReviewRequest,
  readReview,
  reviewOf,
  textOf,
} from '../../injection/review-envelope.ts';
import { readConfigObject } from '../../model/config/config-file.ts';
import { type Problem, problemText } from '../../model/config/problem.ts';
import { kinds } from '../../model/kinds/index.ts';
import { isObject } from '../../runtime/json-object.ts';
import type { Logger } from '../../runtime/output/log.ts';
import { RepeatedLines } from '../xds/stream/repeated-lines.ts';

export interface ConfigReviewsOptions {
  readonly log: Logger;
  /** Unix time in milliseconds. */
  readonly now: () => number;
}

/** Other operations do not change decoded objects. */
const reviewedOperations: ReadonlySet<unknown> = new Set(['CREATE', 'UPDATE']);
/** The API server truncates longer lists of warnings. */
const maxTexts = 16;

const resources: ReadonlyMap<string, string> = new Map(
  Object.values(kinds).map(({ group, kind, writtenAs = kind, plural }) => [
    `${group}/${writtenAs}`,
    `${group}/${plural}`,
  ]),
);

interface ReviewResult {
  readonly errors: readonly string[];
  readonly warnings: readonly string[];
}

/** Decides by the object only, so that a dry run gets the same response. */
export class ConfigReviews {
  /** Counts by `GROUP/PLURAL`, or `unknown` for kinds that are not Istio's. */
  readonly passed = new Map<string, number>();
  readonly failed = new Map<string, number>();
  readonly #repeatedLines: RepeatedLines;

  constructor({ log, now }: ConfigReviewsOptions) {
    this.#repeatedLines = new RepeatedLines(log, now);
  }

  review(body: unknown): AdmissionReview {
    const review = readReview(body);
    if (review === undefined)
      return this.#reject(noRequest, 'unknown', '', { errors: [noReviewMessage], warnings: [] });
    const { request } = review;
    if (!reviewedOperations.has(request.operation)) return reviewOf(review, { allowed: true });
    const { group, kind } = isObject(request.kind) ? request.kind : {};
    const kindText = `${textOf(group)}/${textOf(kind)}`;
    const resource = resources.get(kindText) ?? 'unknown';
    const result = resource === 'unknown' ? unknownKind(kindText) : reviewObject(request);
    if (result.errors.length > 0) return this.#reject(review, resource, `${textOf(kind)} ${nameOf(request)}`, result);
    count(this.passed, resource);
    const { warnings } = result;
    return reviewOf(review, { allowed: true, ...(warnings.length > 0 && { warnings }) });
  }

  #reject(
    request: ReviewRequest,
    resource: string,
    object: string,
    { errors, warnings }: ReviewResult,
  ): AdmissionReview {
    count(this.failed, resource);
    const reason = errors.join('; ');
    this.#repeatedLines.warn(object, 'validation.rejected', {
      object,
      dryRun: request.request.dryRun === true,
      reason,
    });
    return invalidReview(request, reason, warnings);
  }
}

function unknownKind(kindText: string): ReviewResult {
  return {
    errors: [`kind ${JSON.stringify(kindText)} is not one of the mesh; correct the rules of the webhook`],
    warnings: [],
  };
}

function reviewObject(request: ReviewRequest['request']): ReviewResult {
  const object = isObject(request.object) ? request.object : {};
  // The name may be generated after the review.
  const metadata = { ...(isObject(object.metadata) ? object.metadata : {}) };
  const { annotations } = metadata;
  if (isObject(annotations) && annotations[alwaysRejectAnnotation] === 'true')
    return { errors: [`metadata.annotations["${alwaysRejectAnnotation}"]: requests the rejection`], warnings: [] };
  if (textOf(metadata.name) === '' && textOf(metadata.generateName) !== '') metadata.name = `${metadata.generateName}x`;
  if (textOf(metadata.namespace) === '' && textOf(request.namespace) !== '') metadata.namespace = request.namespace;
  const { problems } = readConfigObject('', { ...object, metadata }, { creationTimestamp: 0 });
  const texts = (severity: Problem['severity']): string[] =>
    problems.filter((problem) => problem.severity === severity).map((problem) => problemText(problem));
  return { errors: limitTexts(texts('error')), warnings: limitTexts(texts('warning')) };
}

function limitTexts(texts: readonly string[]): readonly string[] {
  if (texts.length <= maxTexts) return texts;
  return [...texts.slice(0, maxTexts), `and ${texts.length - maxTexts} more; pilot-discovery validate lists all`];
}

function nameOf({ name, namespace, object }: ReviewRequest['request']): string {
  const { metadata } = isObject(object) ? object : {};
  const { generateName } = isObject(metadata) ? metadata : {};
  return `${textOf(namespace)}/${textOf(name) || textOf(generateName)}`;
}

function count(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}
