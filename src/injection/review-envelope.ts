import { isObject } from '../runtime/json-object.ts';

/** A response repeats the version of its request. */
const versions: ReadonlySet<unknown> = new Set(['admission.k8s.io/v1', 'admission.k8s.io/v1beta1']);

export interface AdmissionReview {
  readonly apiVersion: string;
  readonly kind: 'AdmissionReview';
  readonly response: AdmissionResponse;
}

export interface AdmissionResponse {
  readonly uid: string;
  readonly allowed: boolean;
  readonly patch?: string;
  readonly patchType?: 'JSONPatch';
  readonly status?: ReviewRejection;
  readonly warnings?: readonly string[];
}

export interface ReviewRejection {
  readonly message: string;
  readonly reason: 'Invalid' | 'ServiceUnavailable';
  readonly code: 422 | 503;
}

export interface ReviewRequest {
  readonly version: string;
  readonly uid: string;
  readonly request: Readonly<Record<string, unknown>>;
}

export function readReview(body: unknown): ReviewRequest | undefined {
  const { apiVersion, kind, request } = isObject(body) ? body : {};
  if (kind !== 'AdmissionReview' || !versions.has(apiVersion) || !isObject(request)) return undefined;
  return { version: String(apiVersion), uid: textOf(request.uid), request };
}

/** Placeholder for a body that is not an AdmissionReview. */
export const noRequest: ReviewRequest = { version: 'admission.k8s.io/v1', uid: '', request: {} };
export const noReviewMessage = 'the body must be an AdmissionReview of admission.k8s.io/v1 with a request';

export function reviewOf(
  { version, uid }: Pick<ReviewRequest, 'version' | 'uid'>,
  response: Omit<AdmissionResponse, 'uid'>,
): AdmissionReview {
  return { apiVersion: version, kind: 'AdmissionReview', response: { uid, ...response } };
}

export function invalidReview(
  request: Pick<ReviewRequest, 'version' | 'uid'>,
  message: string,
  warnings: readonly string[] = [],
): AdmissionReview {
  const status = { message, reason: 'Invalid', code: 422 } as const;
  return reviewOf(request, { allowed: false, status, ...(warnings.length > 0 && { warnings }) });
}

export function unavailableReview(request: Pick<ReviewRequest, 'version' | 'uid'>, message: string): AdmissionReview {
  return reviewOf(request, { allowed: false, status: { message, reason: 'ServiceUnavailable', code: 503 } });
}

/** `/validate` always rejects an object with this annotation, by which the control plane tests whether the API server calls the webhook. */
export const alwaysRejectAnnotation = 'internal.istio.io/webhook-always-reject';

export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
