// The page of an audit of a real server, whose schema, tables and account have hostile names.
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { hostileNames, startAudit } from './support.js';

let reports;
before(async () => { reports = await startAudit(); });
after(async () => { await reports?.close(); });

// Nothing was requested but the page, and nothing complained about.
function quiet(page) {
  assert.deepEqual(page.seen.requests, [page.url_]);
  assert.deepEqual(page.seen.complaints, []);
}

for (const javaScriptEnabled of [true, false]) {
  test(`an audit can be read at three widths, JavaScript ${javaScriptEnabled ? 'on' : 'off'}, and nothing is requested`, async () => {
    for (const width of [1280, 768, 390]) {
      const page = await reports.open('real-audit', { viewport: { width, height: 844 }, javaScriptEnabled });
      try {
        await page.waitForLoadState('networkidle');
        for (const summary of await page.locator('summary').all()) await summary.click();
        assert.ok(await page.locator('#findings .finding').count() >= 2);
        const faults = await page.evaluate(width => {
          const faults = [];
          const wide = document.documentElement.scrollWidth;
          if (wide > width) faults.push(`the page is ${wide} wide`);
          for (const element of document.querySelectorAll('h1, h2, h3, p, li, dt, dd, td, th, pre')) {
            const text = element.textContent.trim().slice(0, 40);
            const box = element.getBoundingClientRect();
            if (!text || box.width === 0) continue;
            if (parseFloat(getComputedStyle(element).fontSize) < 11) faults.push(`too small: ${text}`);
            // What is wider than the page may be scrolled by itself.
            const scrolled = element.closest('pre') ?? [...function* () {
              for (let e = element; e; e = e.parentElement) if (/auto|scroll/.test(getComputedStyle(e).overflowX)) yield e;
            }()][0];
            if (!scrolled && (box.left < 0 || box.right > width + 1)) faults.push(`leaves the page: ${text}`);
          }
          return faults;
        }, width);
        assert.deepEqual(faults, [], `at ${width}`);
        quiet(page);
        if (process.env.SHOTS) {
          mkdirSync(process.env.SHOTS, { recursive: true });
          await page.screenshot({ path: join(process.env.SHOTS, `audit-${javaScriptEnabled}-${width}.png`), fullPage: true });
        }
      } finally {
        await page.context().close();
      }
    }
  });
}

test('hostile names of a schema and its tables are shown as text and do nothing', async () => {
  const page = await reports.open('real-audit');
  try {
    await page.waitForLoadState('networkidle');
    await page.evaluate(() => document.querySelectorAll('details').forEach(d => { d.open = true; }));
    const text = await page.evaluate(() => document.body.textContent);
    for (const name of hostileNames) assert.ok(text.includes(name), `${name} is not shown`);
    assert.notEqual(await page.title(), '1');
    assert.equal(await page.locator('img, iframe, object, embed, link, svg[onload], base, form').count(), 0);
    assert.equal(await page.evaluate(() => document.querySelectorAll('script').length), 2);
    const handlers = await page.evaluate(() => [...document.querySelectorAll('*')]
      .flatMap(e => e.getAttributeNames()).filter(a => a.startsWith('on') || a === 'src'));
    assert.deepEqual(handlers, []);
    quiet(page);
  } finally {
    await page.context().close();
  }
});
