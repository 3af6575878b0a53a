import { expect, it } from 'vitest';
import { recordingLog } from '../../../test/harness/recording-log.ts';
import { SecretAccess } from './secret-access.ts';

function given() {
  const { log, lines: warnings } = recordingLog();
  const access = new SecretAccess({
    server: { request: () => Promise.reject(new Error('nobody asks')) },
    log,
  });
  const reported: { accounts: string[] } = { accounts: [] };
  access.watch((accounts) => {
    reported.accounts = accounts;
  });
  return { access, reported, warnings };
}

it('service accounts are reviewed as long as their proxies request Secrets', () => {
  const { access, reported } = given();
  const [one, other] = [access.addProxy('shop/gateway'), access.addProxy('shop/gateway')];
  expect([reported.accounts, one.isAllowed, one.isDecided]).toEqual([['shop/gateway'], false, false]);
  access.setAllowed('shop/gateway', true);
  expect([one.isAllowed, other.isAllowed, other.isDecided]).toEqual([true, true, true]);
  one.leave();
  expect(other.isAllowed).toBe(true);
  other.leave();
  expect(reported.accounts).toEqual([]);
  access.setAllowed('shop/gateway', true);
  expect(access.addProxy('shop/gateway')).toMatchObject({ isAllowed: false, isDecided: false });
  access.setAllowed('shop/gateway', false);
  expect(access.addProxy('shop/gateway')).toMatchObject({ isAllowed: false, isDecided: true });
});

it('many accounts in one namespace do not prevent the review of an account in another namespace', () => {
  const { access, reported, warnings } = given();
  const many = Array.from({ length: 1_200 }, (_, index) => access.addProxy(`greedy/account-${index}`));
  expect(reported.accounts).toHaveLength(1_000);
  for (const index of many.keys()) access.setAllowed(`greedy/account-${index}`, true);
  const late = access.addProxy('shop/gateway');
  expect(reported.accounts).toHaveLength(1_000);
  expect(reported.accounts).toContain('shop/gateway');
  access.setAllowed('shop/gateway', true);
  expect(late.isAllowed).toBe(true);
  // One account is no longer reviewed, because `shop/gateway` takes precedence.
  expect(many.filter(({ isAllowed }) => isAllowed)).toHaveLength(999);
  expect(warnings).toEqual([{ event: 'secretAccess.limitExceeded', level: 'warn', maxAccounts: 1_000 }]);
});
