export function urlWithoutCredentials(url: string): string {
  const parsedUrl = URL.parse(url);
  if (parsedUrl === null) return url;
  if (parsedUrl.username === '' && parsedUrl.password === '') return url;
  parsedUrl.username = '';
  parsedUrl.password = '';
  return parsedUrl.href;
}
