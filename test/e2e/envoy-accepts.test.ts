import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { caseNames } from '../networking/case.ts';
import { acceptanceOf, CaseCertificates } from '../networking/envoy-acceptance.ts';

describe('Envoy', () => {
  let certificates: CaseCertificates;

  beforeAll(() => {
    certificates = new CaseCertificates();
  });

  afterAll(() => certificates.remove());

  it.each(caseNames())('accepts the generated configuration of the case "%s"', async (name) => {
    const { expected, ...actualAcceptance } = await acceptanceOf(name, certificates);
    expect(actualAcceptance).toEqual({ ...expected, refusals: [], rejected: [], complaints: [] });
  });
});
