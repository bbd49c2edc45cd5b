#include "net/image/address.h"

#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

struct block4 {
    uint32_t first; /* host order */
    unsigned bits;
};

#define IP4(a, b, c, d) ((uint32_t)(a) << 24 | (uint32_t)(b) << 16 | (uint32_t)(c) << 8 | (d))

static const struct block4 special4[] = {
    {IP4(0, 0, 0, 0), 8},       /* this network */
    {IP4(10, 0, 0, 0), 8},      /* private */
    {IP4(100, 64, 0, 0), 10},   /* shared by a provider's customers (CGNAT) */
    {IP4(127, 0, 0, 0), 8},     /* loopback */
    {IP4(169, 254, 0, 0), 16},  /* link-local; clouds have their metadata here */
    {IP4(172, 16, 0, 0), 12},   /* private */
    {IP4(192, 0, 0, 0), 24},    /* protocol assignments */
    {IP4(192, 0, 2, 0), 24},    /* documentation */
    {IP4(192, 88, 99, 0), 24},  /* 6to4 relays */
    {IP4(192, 168, 0, 0), 16},  /* private */
    {IP4(198, 18, 0, 0), 15},   /* benchmarks */
    {IP4(198, 51, 100, 0), 24}, /* documentation */
    {IP4(203, 0, 113, 0), 24},  /* documentation */
    {IP4(224, 0, 0, 0), 4},     /* multicast */
    {IP4(240, 0, 0, 0), 4},     /* reserved, and broadcast */
};

static bool is_public4(uint32_t address)
{
    for (size_t i = 0; i < sizeof special4 / sizeof special4[0]; i++) {
        const uint32_t mask = UINT32_MAX << (32 - special4[i].bits);
        if ((address & mask) == special4[i].first)
            return false;
    }
    return true;
}

struct block6 {
    uint8_t first[4]; /* its front; all blocks end within it */
    unsigned bits;
};

static const struct block6 special6[] = {
    {{0x20, 0x01, 0x00, 0x00}, 23}, /* protocol assignments: Teredo, benchmarks, ORCHID */
    {{0x20, 0x01, 0x0d, 0xb8}, 32}, /* documentation */
    {{0x20, 0x02, 0x00, 0x00}, 16}, /* 6to4 */
    {{0x3f, 0xff, 0x00, 0x00}, 20}, /* documentation */
};

static uint32_t front_of(const uint8_t bytes[4])
{
    return IP4(bytes[0], bytes[1], bytes[2], bytes[3]);
}

static bool is_public6(const uint8_t address[16])
{
    if ((address[0] & 0xe0) != 0x20) /* 2000::/3 */
        return false;
    for (size_t i = 0; i < sizeof special6 / sizeof special6[0]; i++) {
        const uint32_t mask = UINT32_MAX << (32 - special6[i].bits);
        if ((front_of(address) & mask) == front_of(special6[i].first))
            return false;
    }
    return true;
}

bool tide_address_is_public(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, address, sizeof in);
        return is_public4(ntohl(in.sin_addr.s_addr));
    }
    if (address->sa_family == AF_INET6) {
        struct sockaddr_in6 in;
        memcpy(&in, address, sizeof in);
        return is_public6(in.sin6_addr.s6_addr);
    }
    return false;
}
