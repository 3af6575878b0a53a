/** The content of credential files is secret, their names and sizes are not. */
import { fileErrorOf } from '../../../runtime/errors.ts';
import { readBoundedText } from '../../../runtime/files/bounded-file.ts';
import { ApiError } from '../api-failure.ts';

const maxBytes = 1024 * 1024;

export function credentialsError(message: string): ApiError {
  return new ApiError({ kind: 'credentials', message });
}

/** @throws ApiError `credentials` */
export function readCredentialFile(path: string): string {
  let text: string;
  try {
    text = readBoundedText(path, maxBytes);
  } catch (error) {
    throw credentialsError(`${path}: ${fileErrorOf(error)}`);
  }
  if (text.trim() === '') throw credentialsError(`${path} is empty`);
  return text;
}

/** As in client-go. Kubernetes renews service account tokens in their files long before they expire. */
const maxTokenAgeMs = 60_000;

export class TokenFile {
  readonly #path: string;
  readonly #now: () => number;
  #cachedToken: { readonly token: string; readonly readAt: number } | undefined;

  constructor(path: string, now: () => number = () => performance.now()) {
    this.#path = path;
    this.#now = now;
  }

  /** @throws ApiError `credentials` if the file is unreadable and was never read before */
  token(): string {
    const now = this.#now();
    if (this.#cachedToken !== undefined && now - this.#cachedToken.readAt < maxTokenAgeMs)
      return this.#cachedToken.token;
    try {
      this.#cachedToken = { token: headerText(readCredentialFile(this.#path).trim(), this.#path), readAt: now };
    } catch (error) {
      // The last token may still be valid. Otherwise, the server rejects it.
      if (this.#cachedToken === undefined) throw error;
      this.#cachedToken = { token: this.#cachedToken.token, readAt: now };
    }
    return this.#cachedToken.token;
  }

  invalidate(): void {
    if (this.#cachedToken !== undefined)
      this.#cachedToken = { token: this.#cachedToken.token, readAt: Number.NEGATIVE_INFINITY };
  }
}

/**
 * Text that is invalid in a header would make the request throw.
 *
 * @throws ApiError `credentials`
 */
export function headerText(value: string, source: string): string {
  if (!/^[\x21-\x7e]+$/.test(value))
    throw credentialsError(`the token of ${source} contains spaces, control or non-ASCII characters`);
  return value;
}
