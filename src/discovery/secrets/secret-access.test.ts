import { expect, it } from 'vitest';
import { recordingLog } from '../../../test/harness/recording-log.ts';
import { SecretAccess } from './secret-access.ts';

function given() {
  const { log, lines: warnings } = recordingLog();
  const access = new SecretAccess({
    server: { request: () => Promise.reject(new Error('nobody asks')) },
    log,
  });
  const told: { accounts: string[] } = { accounts: [] };
  access.watch((accounts) => {
    told.accounts = accounts;
  });
  return { access, told, warnings };
}

it('whose proxies ask for Secrets is asked about, for as long as they do', () => {
  const { access, told } = given();
  const [one, other] = [access.enter('shop/gateway'), access.enter('shop/gateway')];
  expect([told.accounts, one.isAllowed, one.isDecided]).toEqual([['shop/gateway'], false, false]);
  access.adopt('shop/gateway', true);
  expect([one.isAllowed, other.isAllowed, other.isDecided]).toEqual([true, true, true]);
  one.leave();
  expect(other.isAllowed).toBe(true);
  other.leave();
  expect(told.accounts).toEqual([]);
  access.adopt('shop/gateway', true);
  expect(access.enter('shop/gateway')).toMatchObject({ isAllowed: false, isAnswered: false });
  access.adopt('shop/gateway', false);
  expect(access.enter('shop/gateway')).toMatchObject({ isAllowed: false, isAnswered: true });
});

it('who has made many accounts in a namespace keeps nobody of another from being asked about', () => {
  const { access, told, warnings } = given();
  const many = Array.from({ length: 1_200 }, (_, index) => access.enter(`greedy/account-${index}`));
  expect(told.accounts).toHaveLength(1_000);
  for (const index of many.keys()) access.adopt(`greedy/account-${index}`, true);
  const late = access.enter('shop/gateway');
  expect(told.accounts).toHaveLength(1_000);
  expect(told.accounts).toContain('shop/gateway');
  access.adopt('shop/gateway', true);
  expect(late.isAllowed).toBe(true);
  // Nobody asks about it any more.
  expect(many.filter(({ isAllowed }) => isAllowed)).toHaveLength(999);
  expect(warnings).toEqual([{ event: 'secretAccess.limitExceeded', level: 'warn', maxAccounts: 1_000 }]);
});
