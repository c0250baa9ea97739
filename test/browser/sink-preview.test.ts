// @module-tag slow
import { describe, expect, it } from 'vitest';
import { browserAvailable, useBrowser } from '../support/browser.ts';
import { hostileDaemon } from './scene.ts';

describe.skipIf(!browserAvailable)('the preview of a view in a browser', { tags: ['stores'] }, () => {
  const visit = useBrowser();

  it('a person types a filter and sees its counts and products; a wrong one is named at the form, which keeps it', async () => {
    const { url } = await hostileDaemon();
    const { page } = await visit();
    await page.goto(`${url}/sinks/file`);
    await page.locator('#main section').first().getByText('live').first().waitFor();
    const preview = page.locator('section', { has: page.getByRole('button', { name: 'Preview' }) });
    const [where, fields] = [preview.getByLabel('Products, where'), preview.getByLabel('Fields')];

    const submit = preview.getByRole('button', { name: 'Preview' });
    await where.fill("vbid IN ('50', '350')\nAND title <> '<b>&\"'");
    await fields.fill('title');
    await submit.click();
    await preview.getByText('Judged 400 products. Nothing was sent.').waitFor();
    const counts = 'it would create 0 products, update 2 and remove 398 of the 400 that the store has';
    await preview.getByText(counts).waitFor();
    expect(await preview.getByText(/^\d+ updated$|^\S+ removed$/).count()).toBe(5);
    expect(await where.inputValue()).toBe("vbid IN ('50', '350')\nAND title <> '<b>&\"'");
    expect(await fields.inputValue()).toBe('title');

    await where.fill("titel = '<i>'");
    await submit.click();
    const alert = preview.getByRole('alert');
    await alert.waitFor();
    expect(await alert.textContent()).toMatch(/^where: no such column: titel\. Did you mean title\?/);
    expect([await where.inputValue(), await fields.inputValue()]).toEqual(["titel = '<i>'", 'title']);
    expect(await preview.getByText('Nothing was sent.').count()).toBe(0);

    await where.fill('');
    await fields.fill('titel || 1');
    await submit.click();
    await alert.getByText(/^fields: /).waitFor();
    expect([await where.inputValue(), await fields.inputValue()]).toEqual(['', 'titel || 1']);
  });
});
