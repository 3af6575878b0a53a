import { createPrivateKey, X509Certificate } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { createAuthority } from '../../../test/certs/authority.ts';
import { certificateDateProblem } from './certificate-dates.ts';

const { certificate, privateKey } = createAuthority().issue(['workload.test']);
const { validFromDate, validToDate } = new X509Certificate(certificate);
const pair = { chain: certificate, key: createPrivateKey(privateKey) };
const vault = { newestPair: (name: string) => (name === 'default' ? pair : undefined) };

describe('validity dates of the workload certificate', () => {
  it('are no problem while the certificate is valid or missing', () => {
    expect(certificateDateProblem(vault, validFromDate.getTime())).toBeUndefined();
    expect(certificateDateProblem(vault, validToDate.getTime() - 1)).toBeUndefined();
    expect(certificateDateProblem({ newestPair: () => undefined }, 0)).toBeUndefined();
  });

  it('are a problem if the certificate has expired or is not valid yet', () => {
    const expired = `workload certificate expired on ${validToDate.toISOString()}`;
    expect(certificateDateProblem(vault, validToDate.getTime())).toBe(expired);
    const earlyProblem = `workload certificate is not valid before ${validFromDate.toISOString()}`;
    expect(certificateDateProblem(vault, validFromDate.getTime() - 1)).toBe(earlyProblem);
  });
});
