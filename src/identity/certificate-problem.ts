/** A problem of a certificate, key, revocation list or bundle. The caller adds the location. */

import type { CertificateCode } from '../runtime/error-codes/certificates.ts';
import { CodedError, type ErrorFields } from '../runtime/errors.ts';

export interface CertificateProblem extends Omit<ErrorFields, 'code'> {
  readonly code: CertificateCode;
  /** A predicate, such as `expired on 2026-01-01T00:00:00.000Z`. */
  readonly message: string;
}

/** @param fields.path of the invalid part, such as `keyUsage` */
export function problemOf(
  code: CertificateCode,
  message: string,
  fields: Omit<ErrorFields, 'code'> = {},
): CertificateProblem {
  return { code, message, ...fields };
}

/** The message has the form `PART must be EXPECTED, got VALUE`. */
export function mismatchProblem(
  code: CertificateCode,
  path: string,
  expected: string,
  actual: string,
): CertificateProblem {
  return { code, message: `${path} must be ${expected}, got ${actual}`, path, expected, got: actual };
}

export function problemTexts(problems: readonly CertificateProblem[]): string {
  return problems.map(({ message }) => message).join('; ');
}

export class CertificateError extends CodedError {
  override readonly name: string = 'CertificateError';
  declare readonly code: CertificateCode;

  constructor({ code, message, ...fields }: CertificateProblem, options: { readonly cause?: unknown } = {}) {
    super(code, message, { ...options, fields });
  }
}
