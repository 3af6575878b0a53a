import { expect, it } from 'vitest';
import { recordingLog } from '../../../test/harness/recording-log.ts';
import { SecretAccess } from './secret-access.ts';

function createAccess() {
  const { log, lines: warnings } = recordingLog();
  const access = new SecretAccess({
    server: { request: () => Promise.reject(new Error('nobody asks')) },
    log,
  });
  const reportedAccess: { accounts: string[] } = { accounts: [] };
  access.watch((accounts) => {
    reportedAccess.accounts = accounts;
  });
  return { access, reported: reportedAccess, warnings };
}

it('service accounts are reviewed as long as their proxies request Secrets', () => {
  const { access, reported } = createAccess();
  const [one, other] = [access.addProxy('shop/gateway'), access.addProxy('shop/gateway')];
  expect([reported.accounts, one.isAllowed, one.isDecided]).toEqual([['shop/gateway'], false, false]);
  access.setAllowed('shop/gateway', true);
  expect([one.isAllowed, other.isAllowed, other.isDecided]).toEqual([true, true, true]);
  one.stopReading();
  expect(other.isAllowed).toBe(true);
  other.stopReading();
  expect(reported.accounts).toEqual([]);
  access.setAllowed('shop/gateway', true);
  expect(access.addProxy('shop/gateway')).toMatchObject({ isAllowed: false, isDecided: false });
  access.setAllowed('shop/gateway', false);
  expect(access.addProxy('shop/gateway')).toMatchObject({ isAllowed: false, isDecided: true });
});

it('many accounts in one namespace do not prevent the review of an account in another namespace', () => {
  const { access, reported, warnings } = createAccess();
  const greedyProxies = Array.from({ length: 1_200 }, (_, index) => access.addProxy(`greedy/account-${index}`));
  expect(reported.accounts).toHaveLength(1_000);
  for (const index of greedyProxies.keys()) access.setAllowed(`greedy/account-${index}`, true);
  const lateProxy = access.addProxy('shop/gateway');
  expect(reported.accounts).toHaveLength(1_000);
  expect(reported.accounts).toContain('shop/gateway');
  access.setAllowed('shop/gateway', true);
  expect(lateProxy.isAllowed).toBe(true);
  // One account is no longer reviewed, because `shop/gateway` takes precedence.
  expect(greedyProxies.filter(({ isAllowed }) => isAllowed)).toHaveLength(999);
  expect(warnings).toEqual([{ event: 'secretAccess.limitExceeded', level: 'warn', maxAccounts: 1_000 }]);
});
