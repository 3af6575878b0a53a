import { describe, expect, it } from 'vitest';
import { retryPolicy } from './retry.ts';

describe('retries', () => {
  it('requests are retried twice by default, on hosts that were not tried', () => {
    const policy = retryPolicy(undefined, undefined, false)!;
    expect(policy.numRetries).toBe(2);
    expect(policy.retryOn).toBe('connect-failure,refused-stream,unavailable,cancelled,retriable-status-codes');
    expect(policy.retryHostPredicate).toHaveLength(1);
    expect(policy.hostSelectionRetryMaxAttempts).toBe(5n);
  });

  it('retries are disabled if the route or the mesh specifies 0 attempts', () => {
    expect(retryPolicy({ attempts: 0 }, undefined, false)).toBeUndefined();
    expect(retryPolicy(undefined, { attempts: 0 }, false)).toBeUndefined();
  });

  it("the route's settings override those of the mesh", () => {
    const policy = retryPolicy({ attempts: 1 }, { attempts: 7, retryOn: 'reset' }, false)!;
    expect(policy).toMatchObject({ numRetries: 1, retryOn: 'reset' });
  });

  it('numbers in the retry conditions are status codes', () => {
    const policy = retryPolicy({ attempts: 1, retryOn: '503, connect-failure,429' }, undefined, false)!;
    expect(policy.retryOn).toBe('connect-failure,retriable-status-codes');
    expect(policy.retriableStatusCodes).toEqual([503, 429]);
  });

  it('retries use the same host if a hash selected it', () => {
    const policy = retryPolicy(undefined, undefined, true)!;
    expect(policy.retryHostPredicate).toEqual([]);
    expect(policy.hostSelectionRetryMaxAttempts).toBe(0n);
  });
});
