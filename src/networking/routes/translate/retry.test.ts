import { describe, expect, it } from 'vitest';
import { retryPolicy } from './retry.ts';

describe('retries', () => {
  it('by default, requests are retried twice on hosts that were not tried', () => {
    const policy = retryPolicy(undefined, undefined, false)!;
    expect(policy.numRetries).toBe(2);
    expect(policy.retryOn).toBe('connect-failure,refused-stream,unavailable,cancelled,retriable-status-codes');
    expect(policy.retryHostPredicate).toHaveLength(1);
    expect(policy.hostSelectionRetryMaxAttempts).toBe(5n);
  });

  it('0 attempts in the route or the mesh disable retries', () => {
    expect(retryPolicy({ attempts: 0 }, undefined, false)).toBeUndefined();
    expect(retryPolicy(undefined, { attempts: 0 }, false)).toBeUndefined();
  });

  it("the route's settings override those of the mesh", () => {
    const policy = retryPolicy({ attempts: 1 }, { attempts: 7, retryOn: 'reset' }, false)!;
    expect(policy).toMatchObject({ numRetries: 1, retryOn: 'reset' });
  });

  it('numbers among the conditions are status codes', () => {
    const policy = retryPolicy({ attempts: 1, retryOn: '503, connect-failure,429' }, undefined, false)!;
    expect(policy.retryOn).toBe('connect-failure,retriable-status-codes');
    expect(policy.retriableStatusCodes).toEqual([503, 429]);
  });

  it('retries stay on the host that a hash selected', () => {
    const policy = retryPolicy(undefined, undefined, true)!;
    expect(policy.retryHostPredicate).toEqual([]);
    expect(policy.hostSelectionRetryMaxAttempts).toBe(0n);
  });
});
