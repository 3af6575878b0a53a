import { describe, expect, it } from 'vitest';
import { failureOfStatus } from './api-failure.ts';

describe('the error for a Kubernetes Status', () => {
  it('contains the code, reason, causes and message of the Status', () => {
    const status = {
      code: 504,
      reason: 'Timeout',
      message: 'Too large resource version',
      details: { causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large' }], retryAfterSeconds: 1 },
    };
    expect(failureOfStatus(status)).toEqual({
      kind: 'status',
      code: 504,
      reason: 'Timeout',
      message: 'Too large resource version',
      causes: ['ResourceVersionTooLarge'],
      retryAfterMs: 1_000,
    });
  });

  it('contains the HTTP status if the body has no Status', () => {
    expect(failureOfStatus({}, 503)).toEqual({
      kind: 'status',
      code: 503,
      reason: '',
      message: 'HTTP status 503',
      causes: [],
    });
    expect(failureOfStatus({}, 429, '7')).toMatchObject({ code: 429, retryAfterMs: 7_000 });
  });

  it('has texts of limited length, whatever the response contains', () => {
    const hostile = failureOfStatus(
      {
        code: '410',
        reason: ['Expired'],
        message: 'x'.repeat(100_000),
        details: { causes: [...Array(1_000).fill({ reason: 'a' }), null], retryAfterSeconds: Number.POSITIVE_INFINITY },
      },
      500,
      '99999999999999999999',
    );
    expect(hostile).toMatchObject({ code: 500, reason: '', retryAfterMs: 60_000 });
    expect(hostile.message.length).toBe(1_000);
    expect(hostile.causes.length).toBe(20);
    for (const details of [null, 'text', [], { causes: 'no list', retryAfterSeconds: -1 }]) {
      expect(failureOfStatus({ details }, 500, 'soon')).toMatchObject({ causes: [] });
      expect(failureOfStatus({ details }, 500, 'soon')).not.toHaveProperty('retryAfterMs');
    }
  });
});
