import * as E from 'fp-ts/lib/Either.js';
import { describeFieldErrors } from '../model/mesh/proxy-config.ts';
import { ownValue } from '../runtime/json-object.ts';
import { inject, podTitle, type SidecarInjector } from './injector.ts';
import { jsonPatchOf } from './merge/json-patch.ts';
import { type Pod, readPod, type Texts } from './pod/pod.ts';
import {
  type AdmissionReview,
  invalidReview,
  noRequest,
  noReviewMessage,
  readReview,
  reviewOf,
  textOf,
} from './review-envelope.ts';

export interface ReviewedInjection {
  readonly review: AdmissionReview;
  readonly outcome: 'injected' | 'skipped' | 'rejected';
  /** A name such as `pod shop/web-7d9-***`; empty if the request contains no pod. */
  readonly pod: string;
  readonly reason: string;
}

/** @param addedEnvironment from the URL ({@link environmentOfPath}) */
export function reviewInjection(
  body: unknown,
  injector: SidecarInjector,
  addedEnvironment: Texts = {},
): ReviewedInjection {
  const review = readReview(body);
  if (review === undefined) return rejectReview({ ...noRequest, pod: '' }, noReviewMessage);
  const { version, uid, request } = review;
  const context = { version, uid, pod: '' };
  const read = readPod(request.object);
  if (E.isLeft(read))
    return rejectReview(context, `request.object is not a valid pod: ${describeFieldErrors(read.left)}`);
  const pod = read.right;
  const namespace = textOf(request.namespace);
  const title = podTitle(pod, pod.metadata.namespace || namespace);
  const injection = inject(injector, pod, namespace, addedEnvironment);
  const { rule: reason, ignoredWord } = injection.decision;
  const texts = [
    ...(ignoredWord === undefined ? [] : [ignoredWordWarning(ignoredWord)]),
    ...(injection.outcome === 'injected' ? overlapWarnings(injector, pod, namespace) : []),
  ];
  const warnings = texts.length > 0 ? { warnings: texts } : {};
  const namedContext = { ...context, pod: title };
  if (injection.outcome === 'skipped') {
    return { review: reviewOf(namedContext, { allowed: true, ...warnings }), outcome: 'skipped', pod: title, reason };
  }
  if (E.isLeft(injection.pod)) {
    return rejectReview(
      namedContext,
      `cannot inject a sidecar into ${title}: ${describeFieldErrors(injection.pod.left)}`,
    );
  }
  const patch = Buffer.from(JSON.stringify(jsonPatchOf(pod, injection.pod.right))).toString('base64');
  const response = { allowed: true, patch, patchType: 'JSONPatch', ...warnings } as const;
  return { review: reviewOf(namedContext, response), outcome: 'injected', pod: title, reason };
}

function ignoredWordWarning(labelValue: string): string {
  return `sidecar.istio.io/inject: must be "true" or "false", got ${JSON.stringify(labelValue)}; it is ignored`;
}

function overlapWarnings({ cluster }: SidecarInjector, { metadata }: Pod, requestNamespace: string): readonly string[] {
  const callers = cluster?.callersOf(metadata.namespace || requestNamespace, metadata.labels ?? {}) ?? [];
  if (callers.length < 2) return [];
  const names = callers.join(', ');
  return [`MutatingWebhookConfigurations ${names} all inject this pod; only the sidecar of ${callers.at(-1)} stays`];
}

interface ReviewContext {
  readonly version: string;
  readonly uid: string;
  readonly pod: string;
}

function rejectReview(context: ReviewContext, message: string): ReviewedInjection {
  return { review: invalidReview(context, message), outcome: 'rejected', pod: context.pod, reason: message };
}

const variables: Readonly<Record<string, string>> = { cluster: 'ISTIO_META_CLUSTER_ID', net: 'ISTIO_META_NETWORK' };

/**
 * Parses a path such as `/inject/cluster/west/net/n1`; a last key without value is ignored.
 *
 * @returns `undefined` if the path is not the webhook's or a key is not a variable name
 */
export function environmentOfPath(path: string): Texts | undefined {
  const [firstSegment, ...segments] = path.split('/').filter((segment) => segment !== '');
  if (firstSegment !== 'inject') return undefined;
  const environment = new Map<string, string>();
  for (let i = 0; i + 1 < segments.length; i += 2) {
    const key = decodeSegment(segments[i]!);
    const value = decodeSegment(segments[i + 1]!);
    if (key === undefined || value === undefined) return undefined;
    const name = ownValue(variables, key) ?? key.toUpperCase();
    if (!/^[A-Z_][A-Z0-9_.-]*$/.test(name)) return undefined;
    environment.set(name, value);
  }
  return Object.fromEntries(environment);
}

function decodeSegment(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment).replaceAll('--slash--', '/');
  } catch {
    return undefined;
  }
}
