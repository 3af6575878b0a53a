/** Unlike in Istio, an injection is successful only if it added a sidecar. */
import type { Registry } from 'prom-client';
import type { InjectionOutcome } from '../../webhooks/injection-reviews.ts';
import { readCounter } from './cheap-metrics.ts';

export interface WebhookCounts {
  readonly injection: ReadonlyMap<InjectionOutcome, number>;
  /** Reviews of Istio objects by `group/plural`. */
  readonly validation: { readonly passed: ReadonlyMap<string, number>; readonly failed: ReadonlyMap<string, number> };
  /** Rejected requests without a review, by HTTP status. */
  readonly refused: ReadonlyMap<number, number>;
}

export function addWebhookMetrics(registry: Registry, { injection, validation, refused }: WebhookCounts): void {
  const add = (name: string, help: string, injectionOutcomes: readonly InjectionOutcome[]): void =>
    readCounter(registry, { name: `sidecar_injection_${name}_total`, help }, () => [
      { labels: {}, value: injectionOutcomes.reduce((sum, outcome) => sum + (injection.get(outcome) ?? 0), 0) },
    ]);
  add('requests', 'Reviews of pods', ['injected', 'skipped', 'rejected', 'unavailable']);
  add('success', 'Reviews of pods that added a sidecar', ['injected']);
  add('skip', 'Reviews of pods that need no sidecar', ['skipped']);
  add('failure', 'Reviews of pods that were rejected', ['rejected', 'unavailable']);
  const addValidation = (name: string, subject: string, counts: ReadonlyMap<string, number>): void =>
    readCounter(
      registry,
      {
        name: `galley_validation_${name}`,
        help: `Reviews of objects of the mesh that ${subject}`,
        labelNames: ['group', 'resource'],
      },
      () =>
        [...counts].map(([key, value]) => {
          const [group = '', resource = ''] = key.includes('/') ? key.split('/') : ['unknown', 'unknown'];
          return { labels: { group, resource }, value };
        }),
    );
  addValidation('passed', 'passed', validation.passed);
  addValidation('failed', 'were rejected', validation.failed);
  const help = 'Requests to webhooks that had no review, by HTTP status';
  readCounter(registry, { name: 'pilot_webhook_refused_requests_total', help, labelNames: ['code'] }, () =>
    [...refused].map(([code, value]) => ({ labels: { code: String(code) }, value })),
  );
}
